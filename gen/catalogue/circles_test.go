package catalogue

import (
	"testing"

	"pgregory.net/rapid"
)

// reaches computes who can reach whom by at least one arrow.
func reaches(nodes int, arrows []arrow[int]) [][]bool {
	r := make([][]bool, nodes)
	for i := range r {
		r[i] = make([]bool, nodes)
	}
	for _, a := range arrows {
		r[a.from][a.to] = true
	}
	for k := range nodes {
		for i := range nodes {
			for j := range nodes {
				r[i][j] = r[i][j] || r[i][k] && r[k][j]
			}
		}
	}
	return r
}

func TestOneShortestCircleIsFoundForEachGroup(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 8).Draw(t, "nodes")
		var arrows []arrow[int]
		for i := range rapid.IntRange(0, 16).Draw(t, "arrows") {
			node := rapid.IntRange(0, nodes-1)
			arrows = append(arrows,
				arrow[int]{from: node.Draw(t, "from"), to: node.Draw(t, "to"), why: i})
		}
		reach := reaches(nodes, arrows)
		var firsts []int // the first nodes of the groups that have a circle
		for n := range nodes {
			first := reach[n][n]
			for earlier := range n {
				first = first && !(reach[n][earlier] && reach[earlier][n])
			}
			if first {
				firsts = append(firsts, n)
			}
		}
		found := circles(nodes, arrows)
		if len(found) != len(firsts) {
			t.Fatalf("got %d circles, want one from each of %v", len(found), firsts)
		}
		for i, circle := range found {
			if circle[0].from != firsts[i] || circle[len(circle)-1].to != firsts[i] {
				t.Fatalf("got %v, want a circle through %d", circle, firsts[i])
			}
			for j, a := range circle {
				if arrows[a.why] != a || j > 0 && circle[j-1].to != a.from {
					t.Fatalf("%v is no way along the arrows", circle)
				}
			}
			if want := lengthOfCircle(nodes, arrows, firsts[i]); len(circle) != want {
				t.Fatalf("got %d steps, want the shortest of %d", len(circle), want)
			}
		}
	})
}

// lengthOfCircle is the length of the shortest way from a node back to itself.
func lengthOfCircle(nodes int, arrows []arrow[int], start int) int {
	at := map[int]bool{start: true}
	for steps := 1; steps <= nodes; steps++ {
		next := map[int]bool{}
		for _, a := range arrows {
			next[a.to] = next[a.to] || at[a.from]
		}
		if next[start] {
			return steps
		}
		at = next
	}
	return 0
}
