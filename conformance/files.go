package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

func fileCases() []Case {
	const (
		fetch = "contract.Environment.FetchFile: a regular file, byte by byte"
		real  = "contract.Environment.Realpath: links are resolved as readlink -f does"
	)
	return []Case{
		{"files/fetch", fetch, onAny(fetchBytes)},
		{"files/fetch-empty", fetch, onAny(fetchEmpty)},
		{"files/fetch-limit", "contract.ErrTooLarge: a file above the limit, of which no more than the limit was written", onAny(fetchLimit)},
		{"files/fetch-missing", "contract.FileError: a missing file is a failure about that file", onAny(fetchMissing)},
		{"files/fetch-directory", "contract.FileError: a directory is no regular file", onAny(fetchDirectory)},
		{"files/fetch-odd-name", fetch, onAny(fetchOddName)},
		{"files/realpath", real, onAny(realpath)},
		{"files/realpath-missing", real + "; the last component may be missing, no other", onAny(realpathMissing)},
		{"files/realpath-loop", "contract.FileError: links that lead in a circle", onAny(realpathLoop)},
	}
}

func fetchBytes(ctx context.Context, b *box) error {
	return b.within(ctx, func(dir string) error {
		file := dir + "/f"
		if _, err := b.do(ctx, `printf 'a\0\xff\x80\r\n' >`+quote(file)); err != nil {
			return err
		}
		return b.fetch(ctx, file, "a\x00\xff\x80\r\n", 0)
	})
}

// fetch wants a file's content.
func (b *box) fetch(ctx context.Context, file, content string, limit int64) error {
	var got bytes.Buffer
	if err := b.FetchFile(ctx, file, &got, limit); err != nil {
		return wrap("fetch "+file, err)
	}
	return want("what was fetched", got.String(), content)
}

func fetchEmpty(ctx context.Context, b *box) error {
	return b.within(ctx, func(dir string) error {
		if _, err := b.do(ctx, ": >"+quote(dir+"/empty")); err != nil {
			return err
		}
		return b.fetch(ctx, dir+"/empty", "", 10)
	})
}

func fetchLimit(ctx context.Context, b *box) error {
	return b.within(ctx, func(dir string) error {
		file := dir + "/ten"
		if _, err := b.do(ctx, "printf 0123456789 >"+quote(file)); err != nil {
			return err
		}
		const size = 10
		if err := b.fetch(ctx, file, "0123456789", size); err != nil {
			return fmt.Errorf("a file of exactly the limit: %w", err)
		}
		var got bytes.Buffer
		err := b.FetchFile(ctx, file, &got, size-1)
		if !errors.Is(err, contract.ErrTooLarge) || got.Len() > size-1 {
			return fmt.Errorf("a file one byte above the limit: %s and %d bytes, want ErrTooLarge and at most %d", said(err), got.Len(), size-1)
		}
		return nil
	})
}

func fetchMissing(ctx context.Context, b *box) error {
	const file = "/no/such/file"
	return fileError("fetch", b.FetchFile(ctx, file, &bytes.Buffer{}, 0), file)
}

func fetchDirectory(ctx context.Context, b *box) error {
	return fileError("fetch", b.FetchFile(ctx, "/usr", &bytes.Buffer{}, 0), "/usr")
}

func fetchOddName(ctx context.Context, b *box) error {
	return b.within(ctx, func(dir string) error {
		file := dir + "/-a 'b\" $c\n*ü"
		if _, err := b.do(ctx, "echo x >"+quote(file)); err != nil {
			return err
		}
		return b.fetch(ctx, file, "x\n", 0)
	})
}

func realpath(ctx context.Context, b *box) error {
	return b.within(ctx, func(dir string) error {
		if _, err := b.do(ctx, "cd "+quote(dir)+" && mkdir d && echo x >d/f && ln -s d l && ln -s l/f m; cd"); err != nil {
			return err
		}
		for file, leads := range map[string]string{"/m": "/d/f", "/l/../m": "/d/f", "/d/./f": "/d/f", "/l": "/d"} {
			got, err := b.Realpath(ctx, dir+file)
			if err != nil {
				return wrap("realpath "+file, err)
			}
			if err := want("the real path of "+file, got, dir+leads); err != nil {
				return err
			}
		}
		return nil
	})
}

func realpathMissing(ctx context.Context, b *box) error {
	return b.within(ctx, func(dir string) error {
		got, err := b.Realpath(ctx, dir+"/new")
		if err != nil {
			return err
		}
		if err := want("the real path of a file to be", got, dir+"/new"); err != nil {
			return err
		}
		_, err = b.Realpath(ctx, dir+"/no/new")
		return fileError("realpath through a missing directory", err, dir+"/no/new")
	})
}

func realpathLoop(ctx context.Context, b *box) error {
	return b.within(ctx, func(dir string) error {
		if _, err := b.do(ctx, "ln -s a "+quote(dir+"/b")+"; ln -s b "+quote(dir+"/a")); err != nil {
			return err
		}
		_, err := b.Realpath(ctx, dir+"/a/x")
		return fileError("realpath of a loop", err, dir+"/a/x")
	})
}
