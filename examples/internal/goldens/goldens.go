// Package goldens has the golden files of gen/golang compiled: this module requires the packages
// that they import, and the generator's must not.
package goldens
