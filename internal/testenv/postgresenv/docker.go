package postgresenv

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os/exec"
	"sync"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	tclog "github.com/testcontainers/testcontainers-go/log"
)

const (
	defaultImage = "postgres:17-alpine"

	probeTimeout = 5 * time.Second // a daemon that takes longer counts as one that does not answer
	pullTimeout  = 3 * time.Minute
	postgresPort = "5432/tcp"

	attemptTimeout = 2 * time.Second // to connect to one address
)

// imageFor returns the image that the environment asks for: one by name, a version of the official
// one, or the default.
func imageFor(name, version string) string {
	switch {
	case name != "":
		return name
	case version != "":
		return "postgres:" + version + "-alpine"
	}
	return defaultImage
}

// hush stops the library from logging its steps to standard error; its errors say what went wrong.
var hush = sync.OnceFunc(func() { tclog.SetDefault(tclog.NewNoopLogger()) })

// startDocker runs a container of the image. It fails within seconds if no daemon answers.
func startDocker(ctx context.Context, cfg Config, name, version string) (*Server, error) {
	hush()
	image := imageFor(name, version)
	if err := prepareImages(ctx, image); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	password := rand.Text()
	ctr, err := testcontainers.Run(ctx, image,
		testcontainers.WithEnv(map[string]string{"POSTGRES_PASSWORD": password}),
		testcontainers.WithExposedPorts(postgresPort),
		testcontainers.WithCmd(append([]string{"postgres"}, commonSettings(cfg)...)...),
	)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("run %s: %w", image, err), terminate(ctr))
	}
	server, err := awaitContainer(ctx, ctr, image, url.UserPassword(superuser, password))
	if err != nil {
		return nil, errors.Join(err, terminate(ctr))
	}
	return server, nil
}

// prepareImages checks that a daemon answers and has the images, or can pull them.
func prepareImages(ctx context.Context, image string) error {
	probe, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	docker, err := testcontainers.NewDockerClientWithOpts(probe)
	if err != nil {
		return fmt.Errorf("no Docker daemon answers: %w", err)
	}
	defer docker.Close()
	if err := ensureImage(ctx, docker, image); err != nil {
		return err
	}
	if testcontainers.ReadConfig().RyukDisabled {
		return nil
	}
	//lint:ignore SA1019 what replaces it is internal to the library
	reaper := testcontainers.ReaperDefaultImage
	if err := ensureImage(ctx, docker, reaper); err != nil {
		return fmt.Errorf("the image that cleans up after containers is missing (set "+
			"TESTCONTAINERS_RYUK_DISABLED=true to do without): %w", err)
	}
	return nil
}

// ensureImage pulls a missing image, once: the library would retry for a quarter of an hour.
func ensureImage(ctx context.Context, docker *testcontainers.DockerClient, image string) error {
	if _, err := docker.ImageInspect(ctx, image); err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	pull, err := docker.ImagePull(ctx, image, client.ImagePullOptions{})
	if err == nil {
		err = pull.Wait(ctx)
	}
	if err != nil {
		return fmt.Errorf("image %s is not here and cannot be pulled: %w", image, err)
	}
	return nil
}

// awaitContainer returns once the server in the container answers on the port that Docker gave it.
func awaitContainer(
	ctx context.Context, ctr *testcontainers.DockerContainer, image string, user *url.Userinfo,
) (*Server, error) {
	dog, err := watchContainer(ctr.GetContainerID())
	if err != nil {
		return nil, err
	}
	stop := func() error { return errors.Join(terminate(ctr), dog.release()) }
	for {
		admin, source, err := connectContainer(ctx, ctr, image, user)
		if err == nil {
			return &Server{Source: source, admin: admin, stop: stop}, nil
		}
		if state, stateErr := ctr.State(ctx); stateErr == nil && !state.Running {
			return nil, errors.Join(fmt.Errorf("%s ended at once:\n%s", image, containerLog(ctr)),
				dog.release())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("%s does not answer: %w\n%s", image, err,
				containerLog(ctr)), dog.release())
		case <-time.After(pollInterval):
		}
	}
}

// connectContainer tries loopback, and then the address that the library takes for the daemon's,
// which is wrong if the tests run in a container that shares the host's network. The password tells
// the server apart from others.
func connectContainer(
	ctx context.Context, ctr *testcontainers.DockerContainer, image string, user *url.Userinfo,
) (*url.URL, string, error) {
	host, err := ctr.Host(ctx)
	if err != nil {
		return nil, "", err
	}
	port, err := ctr.MappedPort(ctx, postgresPort)
	if err != nil {
		return nil, "", err
	}
	var refusals []error
	for _, host := range []string{"127.0.0.1", host} {
		attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
		defer cancel()
		admin := &url.URL{
			Scheme:   "postgres",
			User:     user,
			Host:     net.JoinHostPort(host, port.Port()),
			Path:     "/postgres",
			RawQuery: "sslmode=disable",
		}
		source, err := describe(attempt, admin, "container of "+image)
		if err == nil {
			return admin, source, nil
		}
		refusals = append(refusals, err)
	}
	return nil, "", errors.Join(refusals...)
}

func containerLog(ctr *testcontainers.DockerContainer) string {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	logs, err := ctr.Logs(ctx)
	if err != nil {
		return err.Error()
	}
	defer logs.Close()
	text, _ := io.ReadAll(logs) // show what could be read
	return string(text[max(0, len(text)-logTailBytes):])
}

// terminate removes a container, which may be nil, without waiting for its connections to be
// closed.
func terminate(ctr *testcontainers.DockerContainer) error {
	if ctr == nil {
		return nil
	}
	return testcontainers.TerminateContainer(ctr, testcontainers.StopTimeout(0))
}

// watchContainer removes the container when this process is gone, if the reaper is disabled and the
// docker command is on PATH.
func watchContainer(id string) (*watchdog, error) {
	docker, err := exec.LookPath("docker")
	if err != nil || !testcontainers.ReadConfig().RyukDisabled {
		return nil, nil // a nil watchdog watches nothing
	}
	return startWatchdog(`"$1" rm --force --volumes "$2" >/dev/null 2>&1`, docker, id)
}
