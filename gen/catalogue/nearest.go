package catalogue

import (
	"slices"
	"strings"
)

// nearest returns the candidate that s was probably meant to be: the first of the nearest ones, or
// "" if none is near. Nothing is near to "".
func nearest(s string, candidates []string) string {
	if s == "" {
		return ""
	}
	best, bestDistance := "", 1+max(1, len([]rune(s))/3)
	for _, c := range candidates {
		if strings.EqualFold(s, c) {
			return c
		}
		if n := distance([]rune(s), []rune(c), bestDistance); n < bestDistance {
			best, bestDistance = c, n
		}
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of neighbours that turn a into
// b. It stops at limit.
func distance(a, b []rune, limit int) int {
	if abs(len(a)-len(b)) >= limit {
		return limit
	}
	var previous []int
	current := make([]int, len(b)+1)
	for j := range current {
		current[j] = j
	}
	for i := range a {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range b {
			replace := current[j]
			if a[i] != b[j] {
				replace++
			}
			next[j+1] = min(replace, current[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], previous[j-1]+1)
			}
		}
		if slices.Min(next) >= limit {
			return limit
		}
		previous, current = current, next
	}
	return min(current[len(b)], limit)
}

func abs(n int) int { return max(n, -n) }
