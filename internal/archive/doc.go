// Package archive turns files and directories into a tar stream and back. Both ends of a copy between a machine and a sandbox use it: what one
// packs, the other unpacks, and neither trusts the other.
//
// A stream of ours has the source itself as its first entry, named ".", and everything else by its path below it. Besides what PAX archives
// always have, it carries the holes of sparse files in a record of our own (see holesRecord) and extended attributes of users. A plain archive, which other programs can read and make, has
// neither that first entry nor that record.
//
// What is unpacked never leaves the destination, whatever the stream says: all names are walked with [os.Root]. A file appears under its
// name only when it is whole.
package archive

import "time"

// Totals is how much was copied: Files counts everything that is no directory, Bytes the content of files without their holes.
type Totals struct{ Files, Bytes int64 }

// progressEvery is how often Progress functions are called at most, apart from the end.
const progressEvery = 50 * time.Millisecond

// root is the name of the source itself in a stream of ours.
const root = "."

// holesRecord is the PAX record of a sparse file: its size, then the offset and the length of each piece that has data, in decimal and
// separated by commas. The entry's content is those pieces, one behind another.
const holesRecord = "DOCKERBOX.holes"

// xattrRecord begins the PAX records of extended attributes; GNU tar, bsdtar and Docker use the same.
const xattrRecord = "SCHILY.xattr."
