// Package home keeps the Home tabs of the people who opened theirs up to date.
package home
