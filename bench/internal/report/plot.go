package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// All lengths are in pixels.
const (
	plotHeight  = 480.0
	top, bottom = 96.0, plotHeight - 64
	left, right = 88.0, 612.0 // the labels stand to the right
	inset       = 20.0        // from the frame to the first and the last backlog
	labelColumn = right + 24
	labelGap    = 20.0
	letter      = 6.9 // a generous width of a label's letter, since the font is unknown
)

// A style distinguishes a line from the others by three things, each of which is enough, since not
// everybody sees all colours. The colours are those of Okabe and Ito.
type style struct {
	colour string
	dashes string
	marker string // a path around the origin
}

var styles = []style{
	{"#0072b2", "none", "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z"},
	{"#d55e00", "8 4", "M-4-4h8v8h-8z"},
	{"#009e73", "2 4", "M0-5.5L5 4H-5z"},
	{"#cc79a7", "10 3 2 3", "M0-5.5L5.5 0L0 5.5L-5.5 0z"},
	{"#e69f00", "5 3", "M0 5.5L5-4H-5z"},
	{"#56b4e9", "12 4 2 4 2 4", "M-1.8-5.5h3.6v3.7h3.7v3.6h-3.7v3.7h-3.6v-3.7h-3.7v-3.6h3.7z"},
	{"#000000", "1 3", "M-2-5h4v10h-4z"},
}

// Plot draws lines, each with at least one point, as SVG: rates over backlogs on logarithmic axes,
// with bars from the slowest to the fastest round. The same lines give the same image. It has a
// white background, so that it can be shown on any.
func Plot(lines []Line) string {
	p := plot{lines: lines, width: labelColumn + 24}
	var rates []float64
	for _, line := range lines {
		p.width = max(p.width,
			labelColumn+24+letter*float64(utf8.RuneCountInString(line.Name+last(line))))
		for _, point := range line.Points {
			p.backlogs = append(p.backlogs, point.Backlog)
			rates = append(rates, point.Rate...)
		}
	}
	slices.Sort(p.backlogs)
	p.backlogs = slices.Compact(p.backlogs)
	p.rates = ticks(slices.Min(rates), slices.Max(rates))
	p.x = axis{
		float64(p.backlogs[0]), float64(p.backlogs[len(p.backlogs)-1]), left + inset, right - inset,
	}
	p.y = axis{p.rates[0], p.rates[len(p.rates)-1], bottom, top}
	p.head()
	p.grid()
	for i, line := range lines {
		p.line(line, styles[i%len(styles)])
	}
	p.labels()
	p.add("</svg>")
	return p.svg.String()
}

type plot struct {
	lines    []Line
	width    float64
	backlogs []int
	rates    []float64 // the ticks
	x, y     axis
	svg      strings.Builder
}

func (p *plot) add(format string, args ...any) { fmt.Fprintf(&p.svg, format+"\n", args...) }

func (p *plot) head() {
	p.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" `+
		`width="%.0[1]f" height="%.0[2]f" role="img" aria-labelledby="title desc" `+
		`font-family="system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', Arial, sans-serif" `+
		`font-size="13" fill="#1f2328">`, p.width, plotHeight)
	p.add(`<title id="title">Events published per second, by the number of pending events</title>`)
	p.add(`<desc id="desc">%s</desc>`, escaped(describe(p.lines)))
	p.add(`<rect x="0.5" y="0.5" width="%.0f" height="%.0f" rx="8" fill="#ffffff" `+
		`stroke="#d1d9e0"/>`, p.width-1, plotHeight-1)
	p.add(`<text x="24" y="36" font-size="17" font-weight="600">` +
		`Events published per second, by the number of pending events</text>`)
	p.add(`<text x="24" y="58" fill="#59636e">` +
		`Median of the rounds; bars from the slowest to the fastest. ` +
		`Both axes are logarithmic.</text>`)
}

func (p *plot) grid() {
	for _, rate := range p.rates {
		y := p.y.at(rate)
		p.add(`<path d="M%.1f %.1fH%.1f" stroke="#e4e8ec"/>`, left, y, right)
		p.add(`<text x="%.1f" y="%.1f" text-anchor="end" fill="#59636e">%s</text>`, left-10, y+4.5,
			Number(rate))
	}
	for _, backlog := range p.backlogs {
		x := p.x.at(float64(backlog))
		p.add(`<path d="M%.1f %.1fV%.1f" stroke="#e4e8ec"/>`, x, top, bottom+6)
		p.add(`<text x="%.1f" y="%.1f" text-anchor="middle" fill="#59636e">%s</text>`, x, bottom+22,
			Number(float64(backlog)))
	}
	p.add(`<text x="%.1f" y="%.1f" text-anchor="middle">pending events</text>`, (left+right)/2,
		bottom+46)
	p.add(`<text x="%.1f" y="%.1f" text-anchor="end">events/s</text>`, left-10, top-16)
}

func (p *plot) line(line Line, s style) {
	points := slices.SortedFunc(slices.Values(line.Points), byBacklog)
	var path, bars, markers strings.Builder
	for i, point := range points {
		x, y := p.x.at(float64(point.Backlog)), p.y.at(point.Rate.Median())
		fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(i, 1)], x, y)
		slowest, fastest := p.y.at(point.Rate.Min()), p.y.at(point.Rate.Max())
		fmt.Fprintf(&bars, "M%.1f %.1fh8m-4 0V%.1fm-4 0h8", x-4, slowest, fastest)
		fmt.Fprintf(&markers, `<path d="%s" transform="translate(%.1f %.1f)" stroke="#ffffff"/>`,
			s.marker, x, y)
	}
	p.add(`<g fill="%s" stroke="%[1]s">`, s.colour)
	p.add(`<path d="%s" fill="none" stroke-width="2.5" stroke-dasharray="%s" `+
		`stroke-linejoin="round"/>`, path.String(), s.dashes)
	p.add(`<path d="%s" fill="none" stroke-width="1.5"/>`, bars.String())
	p.add("%s", markers.String())
	p.add(`</g>`)
}

// labels writes the names of the lines in a column, each as near to the end of its line as the
// others allow.
func (p *plot) labels() {
	type label struct {
		Line
		style
		x, y float64 // where the line ends
	}
	all := make([]label, len(p.lines))
	for i, line := range p.lines {
		end := slices.MaxFunc(line.Points, byBacklog)
		all[i] = label{
			line, styles[i%len(styles)], p.x.at(float64(end.Backlog)), p.y.at(end.Rate.Median()),
		}
	}
	slices.SortStableFunc(all, func(a, b label) int { return cmp.Compare(a.y, b.y) })
	places := make([]float64, len(all))
	for i, l := range all {
		places[i] = l.y
	}
	spread(places, labelGap, bottom)
	for i, l := range all {
		p.add(`<path d="M%.1f %.1fL%.1f %.1f" stroke="#8c959f" stroke-dasharray="1 3"/>`, l.x+9,
			l.y, labelColumn-13, places[i])
		p.add(`<path d="%s" transform="translate(%.1f %.1f)" fill="%s"/>`, l.marker, labelColumn-4,
			places[i], l.colour)
		p.add(`<text x="%.1f" y="%.1f">%s<tspan fill="#59636e">%s</tspan></text>`, labelColumn+8,
			places[i]+4.5, escaped(l.Name), last(l.Line))
	}
}

func byBacklog(a, b Point) int { return cmp.Compare(a.Backlog, b.Backlog) }

// last returns the rate at the largest backlog, which follows the line's name.
func last(line Line) string {
	return " " + Number(slices.MaxFunc(line.Points, byBacklog).Rate.Median()) + "/s"
}

// describe returns a description of the lines in words.
func describe(lines []Line) string {
	sentences := make([]string, len(lines))
	for i, line := range lines {
		var points []string
		for _, p := range slices.SortedFunc(slices.Values(line.Points), byBacklog) {
			points = append(points, Number(p.Rate.Median())+" at "+Number(float64(p.Backlog)))
		}
		sentences[i] = line.Name + ": " + strings.Join(points, ", ") + "."
	}
	return strings.Join(sentences, " ")
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder returns no error
	return b.String()
}
