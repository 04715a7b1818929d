//go:build linux

package agent

import "strings"

// stateCase is a conversation with one sandbox. {tmp} is a directory of the case's own. Every command must end by itself; the checks are on
// the last one.
type stateCase struct {
	name     string
	commands []string
	output   string // exact, unless has or hasNot is set
	code     int    // of the last command
	anyCode  bool
	has      string
	hasNot   string
}

var big = strings.Repeat("x", 10_000)

// stateCases are the ways in which shells lose, invent or leak state.
var stateCases = []stateCase{
	// Ways to end.
	{name: "exit keeps directory and export", commands: []string{"mkdir {tmp}/d; cd {tmp}/d; export K=kept; exit 3", `echo "$PWD $K"`}, output: "{tmp}/d kept\n"},
	{name: "exit status", commands: []string{"exit 3"}, code: 3},
	{name: "status of the last command", commands: []string{"(exit 7)"}, code: 7},
	{name: "false", commands: []string{"export K=1; false", "echo $K; false"}, output: "1\n", code: 1},
	{name: "errexit", commands: []string{"cd /usr; export K=kept; set -e; false; echo not reached", `echo "$PWD $K"; false; echo goes on`}, output: "/usr kept\ngoes on\n"},
	{name: "errexit status", commands: []string{"set -e; (exit 9); echo no"}, code: 9},
	{name: "strict mode", commands: []string{"export K=kept; set -euo pipefail; echo $NOPE", `echo "$K[$NOPE]"`}, output: "kept[]\n"},
	{name: "strict mode succeeds", commands: []string{"set -euo pipefail; echo ok"}, output: "ok\n"},
	{name: "exec replaces the shell", commands: []string{"cd /var; exec bash -c 'echo other; exit 4'", "echo here"}, output: "here\n"},
	{name: "exec status", commands: []string{"exec bash -c 'exit 4'"}, code: 4},
	{name: "shell kills itself", commands: []string{"export K=lost; kill -9 $$", "echo still here"}, output: "still here\n"},
	{name: "killed by a signal", commands: []string{"kill -9 $$"}, code: 137},
	{name: "return at top level", commands: []string{"export K=kept; return 5 2>/dev/null; echo on", "echo $K"}, output: "kept\n"},

	// Traps of the command's own.
	{name: "EXIT trap and its state", commands: []string{"trap 'echo bye' EXIT; cd /usr; export K=kept", `echo "$PWD $K"`}, output: "/usr kept\n"},
	{name: "EXIT trap sees the status", commands: []string{"trap 'echo bye $?' EXIT; (exit 4)"}, output: "bye 4\n", code: 4},
	{name: "EXIT trap and exit keep state", commands: []string{"trap 'echo bye $?' EXIT; cd /etc; export K=kept; exit 5", `echo "$PWD $K"`}, output: "/etc kept\n"},
	{name: "EXIT trap and exit", commands: []string{"trap 'echo bye $?' EXIT; exit 5"}, output: "bye 5\n", code: 5},
	{name: "EXIT trap that exits", commands: []string{"trap 'exit 6' EXIT; export K=kept; exit 5", "echo $K"}, output: "kept\n"},
	{name: "status of an EXIT trap that exits", commands: []string{"trap 'exit 6' EXIT; exit 5"}, code: 6},
	{name: "EXIT trap by number", commands: []string{"trap 'echo bye' 0; export K=kept; exit 1", "echo $K"}, output: "kept\n"},
	{name: "EXIT trap set in a function", commands: []string{"arm() { trap 'echo bye' EXIT; }", "arm; export K=kept; exit 2", "echo $K"}, output: "kept\n"},
	{name: "EXIT trap set by a function of a function", commands: []string{"arm() { trap 'echo bye' EXIT; }; outer() { arm; }", "outer; export K=kept; exit 2", "echo $K"}, output: "kept\n"},
	{name: "EXIT trap with errexit", commands: []string{"set -e; trap 'echo bye $?' EXIT; false; echo no"}, output: "bye 1\n", code: 1},
	{name: "EXIT trap taken back", commands: []string{"trap 'echo bye' EXIT; trap - EXIT; export K=kept; exit 1", "echo $K"}, output: "kept\n"},
	{name: "EXIT trap with newlines and quotes", commands: []string{"trap 'echo \"a\nb\"; echo '\\''c'\\''' EXIT; exit 0"}, output: "a\nb\nc\n"},
	{name: "EXIT trap in a subshell", commands: []string{"( trap 'echo sub' EXIT; true ); echo main"}, output: "sub\nmain\n"},
	{name: "trap -p shows the user's trap", commands: []string{"trap 'echo bye' EXIT; trap -p EXIT; trap - EXIT"}, output: "trap -- 'echo bye' EXIT\n"},
	{name: "no trap is shown before one is set", commands: []string{"trap -p; trap"}, output: ""},
	{name: "trap stays a builtin", commands: []string{"type -t trap"}, output: "builtin\n"},
	{name: "trap guard does not last", commands: []string{"trap 'echo bye' EXIT", "declare -F; type -t trap"}, output: "builtin\n"},
	{name: "verbose shows nothing of the agent's", commands: []string{"set -v; true"}, output: ""},
	{name: "aliases of keywords", commands: []string{"alias if='echo if' '[['='echo no' then=done; export K=kept", "echo $K"}, output: "kept\n"},
	{name: "aliases of keywords make no noise", commands: []string{"alias if='echo if' '[['='echo no' then=done; exit 3"}, output: "", code: 3},
	{name: "DEBUG trap", commands: []string{"trap 'echo D' DEBUG; export K=kept", "echo $K"}, output: "kept\n"},
	{name: "ERR trap runs once", commands: []string{"trap 'echo E' ERR; export K=kept; false"}, output: "E\n", code: 1},
	{name: "RETURN trap", commands: []string{"trap 'echo R' RETURN; export K=kept", "echo $K"}, output: "kept\n"},
	{name: "lowercase exit trap", commands: []string{"trap 'echo bye' exit; export K=kept; exit 1", "echo $K"}, output: "kept\n"},

	// Broken text.
	{name: "unterminated quote", commands: []string{"echo 'abc", "echo fine"}, output: "fine\n"},
	{name: "unterminated quote fails", commands: []string{"echo 'abc"}, anyCode: true, has: "unexpected EOF"},
	{name: "unterminated here-document prints", commands: []string{"cat <<EOF\nabc"}, has: "abc"},
	{name: "after an unterminated here-document", commands: []string{"cat <<EOF\nabc", "echo fine"}, output: "fine\n"},
	{name: "here-document that ends the text", commands: []string{"cat <<EOF\nabc\nEOF"}, output: "abc\n"},
	{name: "syntax error", commands: []string{"export K=kept", "if then", "echo $K"}, output: "kept\n"},
	{name: "here-document with operators", commands: []string{"cat <<'E'\na && b &\nE"}, output: "a && b &\n"},
	{name: "error names the line", commands: []string{"nosuchcmd"}, output: "bash: line 1: nosuchcmd: command not found\n", code: 127},
	{name: "error names a later line", commands: []string{":\n:\nnosuchcmd"}, output: "bash: line 3: nosuchcmd: command not found\n", code: 127},
	{name: "comment at the end", commands: []string{"echo a # b"}, output: "a\n"},
	{name: "only a comment", commands: []string{"# nothing"}, output: ""},
	{name: "carriage return", commands: []string{"echo a\r"}, output: "a\r\n"},

	// Directories.
	{name: "directory with a space at its end", commands: []string{"mkdir '{tmp}/sp ' && cd '{tmp}/sp '", `printf "[%s]" "$PWD"`}, output: "[{tmp}/sp ]"},
	{name: "directory with newlines", commands: []string{`mkdir {tmp}/$'n\nl\n' && cd {tmp}/$'n\nl\n'`, `printf "[%s]" "$PWD"`}, output: "[{tmp}/n\nl\n]"},
	{name: "directory with invalid UTF-8", commands: []string{`mkdir {tmp}/$'\xff' && cd {tmp}/$'\xff'`, `printf "%s" "${PWD##*/}" | od -An -tx1`}, output: " ff\n"},
	{name: "directory with a leading dash", commands: []string{"cd {tmp}; mkdir -- -x; cd ./-x", `echo "${PWD##*/}"`}, output: "-x\n"},
	{name: "deleted directory", commands: []string{"mkdir -p {tmp}/a/b; cd {tmp}/a/b; rm -r {tmp}/a", "pwd"}, output: "dockerbox: {tmp}/a/b no longer exists, running in {tmp}\n{tmp}\n"},
	{name: "deleted directory is told once", commands: []string{"mkdir {tmp}/a; cd {tmp}/a; rmdir {tmp}/a", "true", "pwd"}, output: "{tmp}\n"},
	{name: "deleted and made again", commands: []string{"mkdir {tmp}/a; cd {tmp}/a", "true", "rmdir {tmp}/a; mkdir {tmp}/a; touch {tmp}/a/f", "ls"}, output: "f\n"},
	{name: "cd -", commands: []string{"cd /usr; cd /etc", "cd -"}, output: "/usr\n"},
	{name: "cd - before any cd", commands: []string{"cd - 2>&1"}, output: "bash: line 1: cd: OLDPWD not set\n", code: 1},
	{name: "link becomes its target", commands: []string{"mkdir {tmp}/t; ln -s t {tmp}/l; cd {tmp}/l", "pwd"}, output: "{tmp}/t\n"},
	{name: "pushd", commands: []string{"pushd /usr >/dev/null", "pwd"}, output: "/usr\n"},
	{name: "cd in a subshell", commands: []string{"(cd /usr); { cd /etc; } | cat", "pwd"}, output: "{home}\n"},
	{name: "PWD unset", commands: []string{"cd /usr; unset PWD", "pwd"}, output: "/usr\n"},
	{name: "CDPATH", commands: []string{"export CDPATH=/usr; cd lib >/dev/null", "pwd"}, output: "/usr/lib\n"},

	// Variables.
	{name: "PATH emptied", commands: []string{"export PATH=", `echo "[$PATH]"; echo still`}, output: "[]\nstill\n"},
	{name: "PATH restored", commands: []string{"export PATH=", "export PATH=/usr/bin:/bin", "ls / >/dev/null; echo ok"}, output: "ok\n"},
	{name: "PATH unset", commands: []string{"unset PATH", `echo "[${PATH-none}]"`}, output: "[none]\n"},
	{name: "readonly", commands: []string{"readonly R=1; export R; export K=kept", `echo "$R $K"`}, output: "1 kept\n"},
	{name: "state after readonly", commands: []string{"readonly R=1; export R", "export K=kept; alias q='echo aq'", "q; echo $K"}, output: "aq\nkept\n"},
	{name: "readonly names the shell needs", commands: []string{"declare -rx REPLY=1; declare -axr MAPFILE=(1); export MAPFILE", "echo fine"}, output: "fine\n"},
	{name: "quotes and newlines", commands: []string{`export Q=$'a\nb"c'\''d\\e $x ` + "`y`" + ` declare -x Z=1'`, `printf "%s" "$Q"`}, output: "a\nb\"c'd\\\\e $x `y` declare -x Z=1"},
	{name: "looks like the end of a declaration", commands: []string{`export Q=$'"\ndeclare -x EVIL="1'`, `printf "%s%s" "$Q" "${EVIL-}"`}, output: "\"\ndeclare -x EVIL=\"1"},
	{name: "control characters and invalid UTF-8", commands: []string{`export Q=$'\xff\xfe\x01\x7f\t\e\r'`, `printf "%s" "$Q" | od -An -tx1 | tr -d " \n"`}, output: "fffe017f091b0d"},
	{name: "unicode", commands: []string{"export Q='žluťoučký 🐎'", `printf "%s" "$Q"`}, output: "žluťoučký 🐎"},
	{name: "ten kilobytes", commands: []string{"export Q=" + big, "echo ${#Q}"}, output: "10000\n"},
	{name: "more than an argument may be", commands: []string{"export Q=$(printf %0200000d 1)", "echo ${#Q}; unset Q", "ls / >/dev/null && echo ok"}, output: "ok\n"},
	{name: "two hundred kilobytes", commands: []string{"for i in {1..20}; do export V$i=" + big + "; done", "echo ${#V20}; unset ${!V*}"}, output: "10000\n"},
	{name: "unset", commands: []string{"export K=1", "unset K LANG", `echo "[${K-no}${LANG-no}]"`}, output: "[nono]\n"},
	{name: "exported no more", commands: []string{"export K=1", "export -n K", `echo "[${K-no}]"`}, output: "[no]\n"},
	{name: "exported without a value", commands: []string{"export K", "K=v; bash -c 'echo $K'"}, output: "v\n"},
	{name: "empty value", commands: []string{"export K=", `echo "[${K-no}]"`}, output: "[]\n"},
	{name: "not exported does not last", commands: []string{"K=1", `echo "[${K-no}]"`}, output: "[no]\n"},
	{name: "exported array", commands: []string{"declare -ax A=(a 'b c' $'d\\n)\\ndeclare -x X=\"'); export K=1", `echo "${A[1]}$K${#A[@]}"`}, output: "b c13\n"},
	{name: "associative array", commands: []string{`declare -Ax A=([k]=v ["a ] b"]='c d'); export K=1`, `echo "${A[k]}${A["a ] b"]}$K"`}, output: "vc d1\n"},
	{name: "integer", commands: []string{"declare -ix N=5", "N+=2; echo $N"}, output: "7\n"},
	{name: "declare -x", commands: []string{"declare -x K=kept", "echo $K"}, output: "kept\n"},
	{name: "IFS", commands: []string{"export IFS=,", `x=a,b; set -- $x; echo "$#"`}, output: "2\n"},
	{name: "BASH_ENV is for programs", commands: []string{"echo 'echo noise' >{tmp}/e; export BASH_ENV={tmp}/e", "echo one; bash -c true"}, output: "one\nnoise\n"},
	{name: "loader variables are for programs", commands: []string{"export LD_PRELOAD=/no/such.so", "echo fine"}, output: "fine\n"},
	{name: "unknown locale makes no noise", commands: []string{"export LC_ALL=xx_YY.UTF-8", "echo $LC_ALL"}, output: "xx_YY.UTF-8\n"},
	{name: "TMOUT", commands: []string{"export TMOUT=1", "echo $TMOUT"}, output: "1\n"},
	{name: "POSIXLY_CORRECT", commands: []string{"export POSIXLY_CORRECT=1 K=kept", "echo $K"}, output: "kept\n"},
	{name: "name that no shell variable can have", commands: []string{"export K=1", "env | grep ^odd"}, output: "odd.name=kept\n"},

	// Functions and aliases.
	{name: "function with a here-document like a header", commands: []string{"ff() { echo \"f:$1\"; cat <<X\nff () \n{ x\nX\n}; gg() { echo g; }", "ff 1; gg"}, output: "f:1\nff () \n{ x\ng\n"},
	{name: "function unset", commands: []string{"gg() { :; }", "unset -f gg", "type -t gg; echo end"}, output: "end\n"},
	{name: "function changed", commands: []string{"gg() { echo 1; }", "gg() { echo 2; }", "gg"}, output: "2\n"},
	{name: "function with an odd name", commands: []string{"a-b.c:d() { echo odd; }", "a-b.c:d"}, output: "odd\n"},
	{name: "function with extglob", commands: []string{"shopt -s extglob\nm() { case $1 in +(a)) echo as ;; esac; }; zz() { echo zz; }", "shopt -s extglob; m aaa; zz"}, output: "as\nzz\n"},
	{name: "function with control characters", commands: []string{"c() { printf %s $'\\x01\\x7f' '\x01\x7f'; }", "c | od -An -tx1"}, output: " 01 7f 01 7f\n"},
	{name: "functions named like builtins", commands: []string{`cd() { builtin cd "$@" && echo CD; }; pwd() { echo nope; }; exit() { echo no exit; }; eval() { echo no eval; }; printf() { echo P; }; declare() { echo D; }; unset() { echo U; }; export() { echo E; }; cd /etc >/dev/null`, "echo $PWD"}, output: "/etc\n"},
	{name: "functions named like builtins last", commands: []string{"pwd() { echo nope; }; mapfile() { echo M; }; alias() { echo A; }", "pwd; alias"}, output: "nope\nA\n"},
	{name: "function named trap", commands: []string{"trap() { echo mine; }; export K=kept", "trap 'x' EXIT; echo $K"}, output: "mine\nkept\n"},
	{name: "function named builtin", commands: []string{"export K=kept; builtin() { echo mine; }; cd /usr", "echo $K $PWD; type -t builtin"}, output: "kept /usr\nbuiltin\n"},
	{name: "exported function", commands: []string{"hh() { echo hh; }; export -f hh", "bash -c hh"}, output: "hh\n"},
	{name: "alias", commands: []string{`alias zz='echo "it'\''s"'`, "zz"}, output: "it's\n"},
	{name: "alias in the same text", commands: []string{"alias zz='echo z'\nzz"}, output: "z\n"},
	{name: "unalias", commands: []string{"alias zz=true", "unalias zz", "zz; echo $?"}, has: "127"},
	{name: "alias with a leading dash", commands: []string{"alias -- -x='echo dash'", "-x"}, output: "dash\n"},
	{name: "aliases over what reports state", commands: []string{"alias printf='echo P' declare='echo D' builtin='echo B' alias='echo A' export='echo E'; \\export K=kept", `\echo $K`}, output: "kept\n"},
	{name: "aliases over what reports state, and exit", commands: []string{"alias printf='echo P' declare='echo D' builtin='echo B' trap='echo T'; export K=kept", "export L=kept; exit 1", "echo $K $L"}, output: "kept kept\n"},
	{name: "unalias all", commands: []string{"alias a=b c=d; export K=kept", "unalias -a", "alias; echo $K"}, output: "kept\n"},

	// Descriptors, options, limits.
	{name: "set -x shows nothing of the agent", commands: []string{"set -x; cd /usr; : a"}, output: "+++ cd /usr\n+++ : a\n"},
	{name: "set -x with an EXIT trap", commands: []string{"set -x; trap 'echo bye' EXIT; exit 0"}, hasNot: "dockerbox"},
	{name: "set -v", commands: []string{"set -v; export K=kept", "echo $K"}, output: "kept\n"},
	{name: "own descriptors", commands: []string{"exec 9>{tmp}/lock 200>{tmp}/lock2; export K=kept; cd /usr", "echo $K $PWD"}, output: "kept /usr\n"},
	{name: "output moved to a file", commands: []string{"exec >{tmp}/o 2>&1; export K=kept; echo hidden", "echo $K; cat {tmp}/o"}, output: "kept\nhidden\n"},
	{name: "output closed", commands: []string{"export K=kept; exec >&- 2>&-", "echo $K"}, output: "kept\n"},
	{name: "posix mode", commands: []string{"set -o posix; export K=kept; alias q='echo aq'; ff() { :; }", "echo $K; q; type -t ff"}, output: "kept\naq\nfunction\n"},
	{name: "allexport", commands: []string{"set -a; K=kept", "echo $K; env | grep -c __dockerbox; true"}, output: "kept\n0\n"},
	{name: "noclobber", commands: []string{"set -C; export K=kept", "echo $K"}, output: "kept\n"},
	{name: "ulimit -f", commands: []string{"export K=kept; ulimit -f 0; cd /var; true", "echo $K $PWD"}, output: "kept /var\n"},
	{name: "ulimit -n", commands: []string{"export K=kept; ulimit -n 20; true", "echo $K"}, output: "kept\n"},
	{name: "options do not last", commands: []string{"shopt -s globstar; set -f", "shopt -q globstar && echo lasts || echo not; echo {tmp}/*"}, output: "not\n{tmp}/*\n"},
	{name: "writes to /dev/stderr and /dev/stdout", commands: []string{"echo e > /dev/stderr; echo o > /dev/stdout"}, output: "e\no\n"},
	{name: "no input is /dev/null", commands: []string{"readlink /proc/self/fd/0; cat; read -r x; echo $?"}, output: "/dev/null\n1\n"},
	{name: "$0, $#, $@", commands: []string{`echo "$0 $# $@"`}, output: "bash 0 \n"},
	{name: "background does not hold", commands: []string{"sleep 300 & echo started"}, output: "started\n"},
	{name: "background job and cd", commands: []string{"sleep 300 >/dev/null & cd /opt; export K=kept", "echo $K $PWD"}, output: "kept /opt\n"},
	{name: "text above an argument's limit", commands: []string{"echo " + strings.Repeat("y", 200_000) + " | wc -c"}, output: "200001\n"},
	{name: "nothing of the agent in the environment", commands: []string{"env | grep -i [d]ockerbox; declare -F; set | grep -i -e [d]ockerbox -e [M]APFILE; echo end"}, output: "end\n"},
	{name: "BASH_EXECUTION_STRING is the text", commands: []string{`echo "$BASH_EXECUTION_STRING"`}, output: "echo \"$BASH_EXECUTION_STRING\"\n"},
	{name: "SHLVL", commands: []string{"echo $SHLVL", "bash -c 'echo $SHLVL'"}, output: "2\n"},
	{name: "SECONDS starts anew", commands: []string{"true", "echo $SECONDS"}, output: "0\n"},
	{name: "history of writes to the report", commands: []string{"echo garbage >&247; export K=lost; cd /usr", "echo \"[${K-none}]\""}, output: "[none]\n"},
	{name: "report descriptor closed", commands: []string{"exec 247>&-; cd /usr", "pwd"}, output: "{home}\n"},
}
