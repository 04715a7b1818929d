//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// The tree that is copied: as many files as a large project with its libraries has, of 1 to 99 kB, a gigabyte together.
const (
	copyFiles   = 20_000
	copyLeast   = 1_000
	copyMost    = 99_000
	copyFolders = 400
)

const (
	copyOurs   = "`dockerbox cp`"
	copyDocker = "`docker cp`"
)

// copySum is a shell command that sums up the files below the working directory, with their names.
const copySum = "find . -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum"

// runCopy copies a tree into a sandbox and out of it. The two take turns, each to a place of its own where nothing ever was, and all are removed at
// the end: ext4 passes over inodes that were deleted in the last minutes, one by one for each new file, so that whoever copies after a removal is
// measured at searching for inodes (10.5 s in place of 4.0 s for this tree, whoever copies).
func runCopy(ctx context.Context, b *bench) ([]row, error) {
	box, err := b.goPath(ctx)
	if err != nil {
		return nil, err
	}
	c := &copier{b: b, box: box, id: box.env.Info().ContainerID, name: box.env.Info().Name, tree: filepath.Join(b.dir, "tree"), checked: map[string]bool{}}
	files := b.count(copyFiles, copyFolders)
	if err := makeTree(c.tree, files); err != nil {
		return nil, err
	}
	if c.sum, err = b.output(ctx, "bash", "-c", "cd "+c.tree+" && "+copySum); err != nil {
		return nil, err
	}
	var rows []row
	for _, way := range []struct {
		what string
		do   func(context.Context, string) (time.Duration, error)
	}{{"in", c.in}, {"out", c.out}} {
		who := []string{copyOurs, copyDocker}
		taken, err := rounds(ctx, b.count(3, 1), who, way.do)
		if err != nil {
			return nil, fmt.Errorf("copy %s: %w", way.what, err)
		}
		what := fmt.Sprintf("a tree of %d files, %s", files, way.what)
		ours, dockers := measured("copy", what, copyOurs, inMS, taken[copyOurs]), measured("copy", what, copyDocker, inMS, taken[copyDocker])
		rows = append(rows, ours.atLeast(as(dockers), ours.faster(dockers), 1.2), dockers)
	}
	return rows, c.remove(ctx)
}

// makeTree makes the files, the same ones each time.
func makeTree(dir string, files int) error {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // no secret
	noise := make([]byte, 1<<20)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	for i := range files {
		below := filepath.Join(dir, fmt.Sprintf("d%02d", i%copyFolders/8), fmt.Sprintf("e%d", i%8))
		if i < copyFolders {
			if err := os.MkdirAll(below, 0o755); err != nil { //nolint:gosec,mnd // others inside read it
				return err
			}
		}
		size := copyLeast + random.IntN(copyMost-copyLeast)
		at := random.IntN(len(noise) - size)
		if err := os.WriteFile(filepath.Join(below, fmt.Sprintf("file-%05d", i)), noise[at:at+size], 0o644); err != nil { //nolint:gosec,mnd // as above
			return err
		}
	}
	return nil
}

type copier struct {
	b              *bench
	box            *goPath
	id, name, tree string
	sum            string // of the tree
	checked        map[string]bool
	ins, outs      int // copies made
}

// copyDir is what the copies in the sandbox are below.
const copyDir = "/tmp/t-bench-in"

// in times a copy into the sandbox. What arrives stays for the copies out.
func (c *copier) in(ctx context.Context, who string) (time.Duration, error) {
	c.ins++
	dest := fmt.Sprintf("%s/%d", copyDir, c.ins)
	if _, err := c.inside(ctx, "mkdir -pm 777 "+copyDir); err != nil {
		return 0, err
	}
	took, err := c.time(ctx, who, c.tree, dest, true)
	return took, errors.Join(err, c.check(who+" in", func() (string, error) { return c.inside(ctx, "cd "+dest+" && "+copySum) }))
}

func (c *copier) out(ctx context.Context, who string) (time.Duration, error) {
	c.outs++
	dest := filepath.Join(c.b.dir, fmt.Sprintf("out-%d", c.outs))
	took, err := c.time(ctx, who, copyDir+"/1", dest, false)
	return took, errors.Join(err, c.check(who+" out", func() (string, error) { return c.b.output(ctx, "bash", "-c", "cd "+dest+" && "+copySum) }))
}

// check holds what arrived against what was sent, the first time that each way is taken: to sum up a gigabyte takes as long as to copy it.
func (c *copier) check(way string, sum func() (string, error)) error {
	if c.checked[way] {
		return nil
	}
	got, err := sum()
	if err == nil && got != c.sum {
		err = fmt.Errorf("%s: what arrived is not what was sent: %s, %s", way, got, c.sum)
	}
	c.checked[way] = true
	return err
}

func (c *copier) time(ctx context.Context, who, from, to string, in bool) (time.Duration, error) {
	program, words, box := c.b.dockerbox, []string{"cp", "-r"}, c.name
	if who == copyDocker {
		program, words, box = "docker", []string{"cp"}, c.id
	}
	if in {
		to = box + ":" + to
	} else {
		from = box + ":" + from
	}
	unix.Sync() // no turn pays for writing what another left
	began := time.Now()
	_, err := c.b.output(ctx, program, append(words, from, to)...)
	return time.Since(began), err
}

func (c *copier) inside(ctx context.Context, command string) (string, error) {
	r, err := c.box.env.Execute(ctx, contract.Request{Argv: []string{"bash", "-c", command}, User: "0"})
	if err == nil && r.ExitCode != 0 {
		err = fmt.Errorf("%s: %.300s", command, r.Output)
	}
	return strings.TrimSpace(string(r.Output)), err
}

func (c *copier) remove(ctx context.Context) error {
	_, err := c.inside(ctx, "rm -rf "+copyDir)
	for i := range c.outs {
		err = errors.Join(err, os.RemoveAll(filepath.Join(c.b.dir, fmt.Sprintf("out-%d", i+1))))
	}
	return err
}
