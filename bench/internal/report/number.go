package report

import (
	"math"
	"strconv"
	"strings"
)

// significant is how many digits of a figure mean something.
const significant = 3

// Number formats a figure for people, with a comma at every thousand: a whole number as it is, such
// as "50,000", and any other with three significant digits, such as "61,200", "12.4" or "0.0560".
func Number(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	if v == math.Trunc(v) {
		return exact(v)
	}
	// The exponent is that of the rounded number: 9.999 becomes 10.0, and not 10.00.
	scientific := strconv.FormatFloat(v, 'e', significant-1, 64)
	_, exponent, _ := strings.Cut(scientific, "e")
	power, _ := strconv.Atoi(exponent)
	rounded, _ := strconv.ParseFloat(scientific, 64)
	return grouped(strconv.FormatFloat(rounded, 'f', max(0, significant-1-power), 64))
}

// exact formats a number with all of its digits, and a comma at every thousand.
func exact(v float64) string { return grouped(strconv.FormatFloat(v, 'f', -1, 64)) }

// grouped inserts a comma at every thousand of a decimal number.
func grouped(number string) string {
	whole, fraction := number, ""
	if point := strings.IndexByte(number, '.'); point >= 0 {
		whole, fraction = number[:point], number[point:]
	}
	digits := strings.TrimPrefix(whole, "-")
	sign := whole[:len(whole)-len(digits)]
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits + fraction
}
