// Package goldens compiles the golden files of gen/golang. This module requires the packages that
// they import; the generator's module must not.
package goldens
