//go:build linux

package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

// columns are the head of the table.
var columns = []string{"case", "who", "n", "median", "p95", "", "compared", "target", "held"}

// cells are the lines of the table: one for each row, and one more for each further comparison of it. A case is named once, in its first line.
func cells(rows []row) [][]string {
	var lines [][]string
	last := ""
	for _, r := range rows {
		line := []string{"", r.Who, fmt.Sprint(r.N), number(r.Median), "", r.Unit}
		if r.Part+r.Case != last {
			line[0], last = r.Case, r.Part+r.Case
		}
		if r.P95 != nil {
			line[4] = number(*r.P95)
		}
		if len(r.Checks) == 0 {
			lines = append(lines, append(line, "", "", ""))
		}
		for i, c := range r.Checks {
			if i > 0 {
				line = []string{"", "", "", "", "", ""}
			}
			lines = append(lines, append(line, c.compared(), c.target(), c.Held))
		}
	}
	return lines
}

// compared is the comparison in words: "26.3 × as fast as built-in docker", "p95 against the median: 1.2 ×".
func (c check) compared() string {
	if c.What == itself {
		return ""
	}
	if c.Unit == "×" && strings.HasPrefix(c.What, "×") {
		return number(c.Value) + " " + c.What
	}
	return strings.TrimSpace(c.What + ": " + number(c.Value) + " " + c.Unit)
}

func (c check) target() string {
	if c.Want == "" {
		return ""
	}
	return strings.TrimSpace(c.Want + " " + number(c.Limit) + " " + c.Unit)
}

// number has three digits that count, and no more behind the point than two.
func number(v float64) string {
	switch size := math.Abs(v); {
	case v == math.Trunc(v) && size < 1e6, size >= 100:
		return fmt.Sprintf("%.0f", v)
	case size >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

// writeTable prints for people.
func writeTable(out io.Writer, r report) error {
	const padding = 2
	var text strings.Builder
	t := tabwriter.NewWriter(&text, 0, 0, padding, ' ', 0)
	for _, line := range r.head() {
		fmt.Fprintf(t, "%s\t%s\n", line[0], line[1])
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(t, "\n%s\n", strings.Join(columns, "\t"))
	for _, line := range cells(r.Rows) {
		fmt.Fprintln(t, strings.Join(line, "\t"))
	}
	held, all := r.held()
	fmt.Fprintf(t, "\n%d of %d targets met\n", held, all)
	if err := t.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		if _, err := io.WriteString(out, strings.TrimRight(line, " \n")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// held counts targets that were met, and all.
func (r report) held() (held, all int) {
	for _, row := range r.Rows {
		for _, c := range row.Checks {
			switch c.Held {
			case met:
				held++
				all++
			case missed:
				all++
			}
		}
	}
	return held, all
}
