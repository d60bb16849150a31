package catalogue

import (
	"slices"
	"strings"
)

// arrow leads from one node of a graph to another. It carries the reason for that.
type arrow[T any] struct {
	from, to int
	why      T
}

// circles returns one circle of every group of nodes that can all reach one another: a shortest one
// through the group's first node. In a graph of n nodes there may be more circles than anybody can
// count, but never more than n groups. It takes time in proportion to the arrows.
func circles[T any](nodes int, arrows []arrow[T]) [][]arrow[T] {
	out := make([][]arrow[T], nodes)
	for _, a := range arrows {
		out[a.from] = append(out[a.from], a)
	}
	var found [][]arrow[T]
	group := groups(out)
	seen := map[int]bool{}
	for n := range nodes {
		if !seen[group[n]] {
			seen[group[n]] = true
			if circle := shortest(out, group, n); circle != nil {
				found = append(found, circle)
			}
		}
	}
	return found
}

// groups numbers the strongly connected components, by Tarjan's algorithm.
func groups[T any](out [][]arrow[T]) []int {
	n := len(out)
	s := tarjan[T]{out: out, order: make([]int, n), low: make([]int, n), group: make([]int, n)}
	for n := range out {
		if s.order[n] == 0 {
			s.visit(n)
		}
	}
	return s.group
}

type tarjan[T any] struct {
	out               [][]arrow[T]
	order, low, group []int // by node; from 1, 0 for none yet
	visited, groups   int
	stack             []int
}

func (s *tarjan[T]) visit(n int) {
	s.visited++
	s.order[n], s.low[n] = s.visited, s.visited
	s.stack = append(s.stack, n)
	for _, a := range s.out[n] {
		switch {
		case s.order[a.to] == 0:
			s.visit(a.to)
			s.low[n] = min(s.low[n], s.low[a.to])
		case s.group[a.to] == 0:
			s.low[n] = min(s.low[n], s.order[a.to])
		}
	}
	if s.low[n] < s.order[n] {
		return
	}
	s.groups++
	for {
		top := s.stack[len(s.stack)-1]
		s.stack = s.stack[:len(s.stack)-1]
		s.group[top] = s.groups
		if top == n {
			return
		}
	}
}

// shortest returns a shortest way from a node back to itself, or nil. It looks in the node's group
// only.
func shortest[T any](out [][]arrow[T], group []int, start int) []arrow[T] {
	came := map[int]arrow[T]{} // the arrow by which a node was reached first
	for queue := []int{start}; len(queue) > 0; queue = queue[1:] {
		for _, a := range out[queue[0]] {
			if _, ok := came[a.to]; ok || group[a.to] != group[start] {
				continue
			}
			came[a.to] = a
			if a.to == start {
				return wayTo(came, start)
			}
			queue = append(queue, a.to)
		}
	}
	return nil
}

// wayTo follows the arrows back from the node at which a circle begins and ends.
func wayTo[T any](came map[int]arrow[T], start int) []arrow[T] {
	circle := []arrow[T]{came[start]}
	for a := came[start]; a.from != start; {
		a = came[a.from]
		circle = append(circle, a)
	}
	slices.Reverse(circle)
	return circle
}

// maxListed is how many things of a kind a message lists at most.
const maxListed = 8

// listed joins words, and leaves out those before the last if there are too many.
func listed(words []string, separator string) string {
	if len(words) > maxListed {
		words = append(append(words[:maxListed-1:maxListed-1], "…"), words[len(words)-1])
	}
	return strings.Join(words, separator)
}
