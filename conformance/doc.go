// Package conformance is the Hermes terminal-backend contract as cases that any backend can be held to: [Cases] lists them, [Run] runs
// them against a [Subject] and tells of each whether it passed, failed or was declared not to hold.
//
// A backend of your own needs a Subject of a few lines. A case knows only package contract; it assumes bash and coreutils inside the
// sandbox, for connections to ports Perl, and nothing else of the image. Cases are independent: each works alone, in any order, on a new sandbox or on one that other
// cases have used, and leaves nothing behind but what it declares in a home.
//
// A case whose Rule begins with "contract." comes from the interfaces in package contract; "Hermes 2" and "Hermes 3.N" are section 2
// (the environment object) and rule N of section 3 (what the host does around a provider) of Hermes's own contract.
package conformance
