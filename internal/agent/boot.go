//go:build linux

package agent

import (
	"regexp"
	"strings"
)

// Descriptors a shell starts with besides 0, 1 and 2. They are high because scripts like 3 to 9, and flock examples 9 and 200. All
// but the status one are closed before the command's text begins.
const (
	fdInput   = 246 // standard input, when the command has one
	fdStatus  = 247 // see recordState and its kin; a pipe, because a file would be subject to ulimit -f
	fdPrelude = 248 // a memfd: boot script, NUL, prelude
	fdText    = 249 // a memfd: the fields listed below, each ended by NUL
	fdTrigger = 250 // one "go" when the text is there, the end when it never will be
)

// Fields of fdText, by their index in MAPFILE:
//
//	0  "1" when standard input is fdInput, else it is /dev/null
//	1  the directory to run in
//	2  one of the how constants
//	3  where to run silently when that cannot be entered; may be empty
//	4  what to evaluate first: variables of this command, the trap guard
//	5  the command

// What to do when a directory cannot be entered and there is no fallback.
const (
	howStrict = "strict" // do not run
	howNote   = "note"   // run in the nearest parent and say so on stderr
	howQuiet  = "quiet"  // the same without a word
)

// loader is all of the shell's command line, so that ps and pgrep -f show nothing of the boot script. mapfile and not read: read obeys
// TMOUT, handles control characters of its own accord, and takes pipes byte by byte. MAPFILE, because the name is bash's own.
const loader = `builtin mapfile -d '' -t -u 248; builtin eval -- "${MAPFILE[0]}"`

// clearTraps comes first in all that runs behind a command's back: a DEBUG, ERR or RETURN trap of the command would run there too.
// A function called builtin would stand in front of everything that follows; only POSIX mode finds unset first.
const clearTraps = `if [[ -n ${__dockerbox_builtin-} ]]; then POSIXLY_CORRECT=1; unset -f builtin; fi; builtin trap - DEBUG ERR RETURN; `

// reportState writes a state record. pwd -P fails in a deleted directory: then the name the shell last had for it must do.
const reportState = `{ builtin printf 'state\0'; builtin pwd -P || builtin printf '%s\n' "$PWD"; builtin printf '\0%s\0' "$PWD"; ` +
	`builtin declare -px; builtin printf '\0'; builtin declare -F; builtin printf '\0'; builtin declare -f; builtin printf '\0'; ` +
	`builtin alias -p; builtin printf '\0end\0'; } >&247; `

// reportOnce writes the state unless it was written, and only in the shell itself: a subshell is not what lasts.
const reportOnce = `if [[ $BASHPID == $$ && -z ${__dockerbox_done-} ]]; then __dockerbox_done=1; ` + reportState + `fi; `

// atExit is the EXIT trap: it serves exit, set -e, set -u and TERM. Silenced as a whole, or set -x would show it. Bash parses
// it line by line, so that the command's aliases for if or [[ end with noAliases.
const atExit = `{ ` + clearTraps + reportOnce + `} >/dev/null 2>&1`

// noAliases is a line of its own in front of atExit; joined by $'\n', because boot is to stay one line.
const noAliases = `{ builtin shopt -u expand_aliases; } 2>/dev/null`

// enterDir implements fields 1 to 3. The nearest parent is looked for here and not in the agent, because root
// without DAC_OVERRIDE cannot look below a home of mode 0700.
const enterDir = `builtin cd -- "${MAPFILE[1]}" 2>/dev/null || ` +
	`{ [[ -n ${MAPFILE[3]} ]] && builtin cd -- "${MAPFILE[3]}" 2>/dev/null; } || ` +
	`if [[ ${MAPFILE[2]} == strict ]]; then ` +
	`if [[ -d ${MAPFILE[1]} ]]; then REPLY='permission denied'; elif [[ -e ${MAPFILE[1]} ]]; then REPLY='not a directory'; else REPLY='no such directory'; fi; ` +
	`builtin printf 'refused\0%s\0' "$REPLY" >&247; builtin exit 126; ` +
	`else ` +
	`REPLY=${MAPFILE[1]}; while REPLY=${REPLY%/*}; ! builtin cd -- "${REPLY:-/}" 2>/dev/null && [[ -n $REPLY ]]; do builtin :; done; ` +
	`builtin printf 'moved\0' >&247; ` +
	`if [[ ${MAPFILE[2]} == note ]]; then ` +
	`if [[ -e ${MAPFILE[1]} ]]; then REPLY='cannot be entered'; else REPLY='no longer exists'; fi; ` +
	`builtin printf 'dockerbox: %s %s, running in %s\n' "${MAPFILE[1]}" "$REPLY" "$PWD" >&2; fi; fi; `

// boot is what a shell runs, as one line: bash reads a whole line before it runs any of it, so no alias of the state can change it,
// and errors in the command's text name its own lines, the first of them 1. BASH_EXECUTION_STRING is where bash -c TEXT has TEXT;
// with it there and MAPFILE gone, set shows no trace of the boot. exec stands without builtin, which would undo its redirections; that is
// why a function of that name does not last. The inline report after the text serves commands whose own EXIT
// trap took the place of ours; exit gives that trap the right $?.
var boot = `builtin shopt -u expand_aliases; { builtin eval -- "${MAPFILE[1]}"; } >/dev/null 2>&1; exec 248<&-; ` +
	`builtin mapfile -d '' -t -n 1 -u 250; [[ ${MAPFILE[0]-} == go ]] || builtin exit 0; exec 250<&-; ` +
	`builtin mapfile -d '' -t -u 249; exec 249<&-; ` +
	`if [[ ${MAPFILE[0]} == 1 ]]; then exec 0<&246; fi; exec 246<&-; ` +
	enterDir +
	`builtin trap ` + quote(unaliased(noAliases)) + `$'\n'` + quote(unaliased(atExit)) + ` EXIT; ` +
	`{ builtin eval -- "${MAPFILE[4]}"; } 2>/dev/null; builtin shopt -s expand_aliases; ` +
	`BASH_EXECUTION_STRING=${MAPFILE[5]}; builtin unset MAPFILE REPLY; SECONDS=0; builtin eval -- "$BASH_EXECUTION_STRING"; ` +
	`{ __dockerbox_status=$?; ` + clearTraps + reportOnce + `builtin set +exv; } >/dev/null 2>&1; builtin exit $__dockerbox_status`

// unaliased makes code fit for a trap or an eval: those are parsed when they run, and by then the command may have made aliases.
func unaliased(code string) string { return strings.ReplaceAll(code, "builtin ", `\builtin `) }

// guardTrap is a function that lets a command have an EXIT trap of its own and its state kept. The user's is put in place while the real
// trap builtin runs, so that trap -p and every spelling of EXIT work; then what stands there is taken over and guardedExit put
// around it. In a subshell the builtin alone is right. Silenced but for the builtin's own complaints, because of set -x.
var guardTrap = `trap() { if { [[ $BASHPID != $$ ]]; } 2>/dev/null; then builtin trap "$@"; return; fi; ` +
	`{ __dockerbox_status=0; builtin trap - EXIT; [[ -z ${__dockerbox_exit-} ]] || builtin eval -- "\\builtin $__dockerbox_exit"; } 2>/dev/null; ` +
	`builtin trap "$@" || __dockerbox_status=$?; ` +
	`{ __dockerbox_exit=$(builtin trap -p EXIT); builtin eval -- "\\builtin set -- $__dockerbox_exit"; __dockerbox_code=${3-}; ` +
	`builtin trap ` + quote(guardedExit) + ` EXIT; return $__dockerbox_status; } 2>/dev/null; }; ` +
	`__dockerbox_report() { __dockerbox_status=$?; ` + reportOnce + `return $__dockerbox_status; }; ` +
	// As if trap had been called: a function may call it long before EXIT, and before that trap -p must not show ours.
	`__dockerbox_exit=; __dockerbox_code=`

// guardedExit reports the state before the user's code runs, because that may exit. The status reaches it as $? by way of a condition,
// which neither set -e nor an ERR trap looks at. The code is not run in a function: return and local would mean something else.
const guardedExit = `if { __dockerbox_report; } >/dev/null 2>&1; then \builtin eval -- "$__dockerbox_code"; else \builtin eval -- "$__dockerbox_code"; fi`

var (
	// callsTrap finds trap where a command can stand. A quote counts too: bash -c 'trap …' gets a function that does no harm.
	callsTrap = regexp.MustCompile("(?:^|[;&|(){}!\n'\"`]|\\b(?:then|do|else|elif|if|while|until|eval|command|builtin|time)[ \t])[ \t]*trap(?:[ \t;&|)\n]|$)")
	// concernsExit finds what can name EXIT, or asks trap to list what is set.
	concernsExit = regexp.MustCompile(`(?i)\b(?:sig)?exit\b|[ \t'"]0(?:[ \t;&|)\n'"]|$)|trap[ \t]*(?:-p|[;&|)\n]|$)`)
	// definesBuiltin finds a function named builtin being defined.
	definesBuiltin = regexp.MustCompile(`\bbuiltin[ \t]*\(|\bfunction[ \t]+builtin\b`)
	words          = regexp.MustCompile(`[^\s;&|(){}<>"'$` + "`" + `]+`)
)

// guards reports whether text, run in state s, can set an EXIT trap or list traps, itself or through functions and aliases of s.
func (s *snapshot) guards(text string) bool {
	if _, theirs := s.functions["trap"]; theirs {
		return false // the user's own trap must stay what the command calls
	}
	s.traps.Do(func() { s.trapNames = s.trapping() })
	return setsExitTrap(text) || mentions(text, s.trapNames)
}

// trapping returns the names of functions and aliases that lead to an EXIT trap, directly or through one another.
func (s *snapshot) trapping() map[string]bool {
	found := map[string]bool{}
	for name, f := range s.functions {
		if setsExitTrap(f.body) {
			found[name] = true
		}
	}
	for name, text := range s.aliases {
		if setsExitTrap(text) {
			found[name] = true
		}
	}
	for more := len(found) > 0; more; {
		more = false
		for name, f := range s.functions {
			if !found[name] && mentions(f.body, found) {
				found[name], more = true, true
			}
		}
	}
	return found
}

func setsExitTrap(text string) bool {
	return strings.Contains(text, "trap") && callsTrap.MatchString(text) && concernsExit.MatchString(text)
}

func mentions(text string, names map[string]bool) bool {
	if len(names) == 0 {
		return false
	}
	for _, w := range words.FindAllString(text, -1) {
		if names[w] {
			return true
		}
	}
	return false
}
