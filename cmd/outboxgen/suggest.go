package main

import "fmt"

// didYouMean suggests the command whose name is nearest, if one is near.
func didYouMean(name string) string {
	best, bestDistance := "", 3
	for _, c := range commands() {
		if d := distance(name, c.name); d < bestDistance || len(name) > 2 &&
			len(name) < len(c.name) && c.name[:len(name)] == name {
			best, bestDistance = c.name, min(d, bestDistance)
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(": did you mean %q?", best)
}

// distance counts the insertions, deletions and replacements that turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
