package output

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
)

// Apply makes the changes: it writes every new file to a stage beside its place, then moves them to
// their places one by one, removes what is stale, and moves the lock.
//
// If there is an error, or if the context ends before the first move, everything is as it was. If
// the process is killed, every file is whole, the lock knows those that are new, and another run
// completes the work.
func (c *Changes) Apply(ctx context.Context, dir Dir) (err error) {
	steps := c.steps()
	if len(steps) == 0 {
		return nil
	}
	defer func() { err = errors.Join(err, dir.Clean()) }()
	if err := dir.prepare(steps); err != nil {
		return err
	}
	for i, w := range steps {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := dir.stage(w, i); err != nil {
			return err
		}
	}
	for i, w := range steps {
		if err := dir.commit(w, i); err != nil {
			return errors.Join(err, dir.takeBack(steps[:i]))
		}
	}
	for _, name := range c.stale {
		prune(dir, name)
	}
	return nil
}

// Create writes a file that is not there yet, whole or not at all. It is fs.ErrExist if there is
// one.
func (d Dir) Create(ctx context.Context, name string, data []byte) error {
	if _, err := d.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, fs.ErrExist)
	}
	if err := d.Clean(); err != nil {
		return err
	}
	return (&Changes{Write: []Write{{Path: name, Data: data}}}).Apply(ctx, d)
}

// steps returns all changes in their order.
func (c *Changes) steps() []Write {
	var steps []Write
	if c.begun != nil {
		steps = append(steps, *c.begun)
	}
	steps = append(steps, c.Write...)
	steps = append(steps, c.remove...)
	if c.lock != nil {
		steps = append(steps, *c.lock)
	}
	return steps
}

// stage writes the data of a step into the stage.
func (d Dir) stage(w Write, step int) error {
	if w.removal {
		return nil
	}
	name := staged(w, step)
	if err := d.create(name, w.Data, 0o644); err != nil {
		return d.describe(w.Path, err)
	}
	if !w.Missing() {
		if err := d.Chmod(name, w.mode); err != nil {
			return d.describe(w.Path, err)
		}
	}
	return nil
}

// commit carries a step out.
func (d Dir) commit(w Write, step int) error {
	var err error
	if w.removal {
		err = d.Remove(w.Path)
	} else {
		err = d.Rename(staged(w, step), w.Path)
	}
	if err != nil && !(w.removal && errors.Is(err, fs.ErrNotExist)) {
		return d.describe(w.Path, err)
	}
	return nil
}

// takeBack puts back what steps have changed.
func (d Dir) takeBack(done []Write) error {
	var errs []error
	for i, w := range slices.Backward(done) {
		var err error
		if w.Missing() {
			err = d.Remove(w.Path)
		} else {
			old := Write{Path: w.Path, Data: w.Old, Old: w.Old, mode: w.mode}
			if err = d.makeStage(path.Dir(w.Path)); err == nil {
				err = d.stage(old, -1-i)
			}
			if err == nil {
				err = d.commit(old, -1-i)
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%w (and it is not as it was before: run it again)",
				d.describe(w.Path, err)))
		}
	}
	return errors.Join(errs...)
}

// prune removes the directories above a removed file that are empty now.
func prune(dir Dir, name string) {
	for parent := path.Dir(name); parent != "."; parent = path.Dir(parent) {
		if dir.Remove(parent) != nil {
			break
		}
	}
}
