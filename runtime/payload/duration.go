package payload

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// isoDuration is ISO 8601 without years and months, which have no fixed length. A day is 24 hours.
var isoDuration = regexp.MustCompile(
	`^([+-]?)P(?:(\d{1,9})W)?(?:(\d{1,9})D)?(T(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d{1,9})?S)?)?$`)

var errDuration = problem("not an ISO 8601 duration of weeks, days, hours, minutes and seconds that fits 64 bits of nanoseconds")

// appendDuration writes hours, minutes and seconds without those that are zero: PT1H30M0.5S, -PT5S, PT0S.
func appendDuration(b []byte, d time.Duration) ([]byte, error) {
	rest := uint64(d)
	if d < 0 {
		b = append(b, '-')
		rest = -rest
	}
	hours, minutes := rest/uint64(time.Hour), rest/uint64(time.Minute)%60
	seconds, nanos := rest/uint64(time.Second)%60, rest%uint64(time.Second)
	b = append(b, "PT"...)
	if hours > 0 {
		b = append(strconv.AppendUint(b, hours, 10), 'H')
	}
	if minutes > 0 {
		b = append(strconv.AppendUint(b, minutes, 10), 'M')
	}
	switch {
	case nanos > 0:
		b = append(b, strings.TrimRight(fmt.Sprintf("%d.%09d", seconds, nanos), "0")...)
		b = append(b, 'S')
	case seconds > 0 || d == 0:
		b = append(strconv.AppendUint(b, seconds, 10), 'S')
	}
	return b, nil
}

// parseDuration leaves the arithmetic and its limits to time.ParseDuration.
func parseDuration(text []byte) (time.Duration, error) {
	m := isoDuration.FindSubmatch(text)
	if m == nil || text[len(text)-1] == 'P' || text[len(text)-1] == 'T' {
		return 0, errDuration
	}
	goForm := string(m[1])
	for i, hours := range []uint64{7 * 24, 24} {
		if n, err := strconv.ParseUint(string(m[2+i]), 10, 64); err == nil {
			goForm += strconv.FormatUint(n*hours, 10) + "h"
		}
	}
	goForm += strings.ToLower(strings.TrimPrefix(string(m[4]), "T"))
	d, err := time.ParseDuration(goForm)
	if err != nil {
		return 0, errDuration
	}
	return d, nil
}
