package bench_test

import (
	"os/exec"
	"testing"
)

func TestGeneratedCodeIsUpToDate(t *testing.T) {
	t.Parallel()
	for _, catalogue := range []string{"outbox.yaml", "retained/outbox.yaml"} {
		out, err := exec.CommandContext(t.Context(), "go", "run",
			"github.com/outboxgen/outboxgen/cmd/outboxgen", "check", catalogue).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", catalogue, err, out)
		}
	}
}
