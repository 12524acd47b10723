package config

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Again reads the file from which the configuration was read, as it is now, or
// returns everything that is wrong with it.
func (c Config) Again() (Config, error) {
	if c.file == "" { // that of the demo is none
		return c, nil
	}
	now, err := Read(c.file)
	if err == nil {
		err = now.Check()
	}
	return now, err
}

// reloadable are the keys that can change while the bot runs. They are read whenever a
// run is claimed or each time they are used, and nothing made at the start depends on
// them.
var reloadable = []string{
	"agents[].instructions", "agents[].model", "agents[].model_api", "agents[].timeout", "agents[].limits", "retention",
	"remote_agents[].tokens", "gateways[].clients[].tokens", "web.people[].tokens",
}

// Changes are the keys that are different in the other configuration: those that
// can be taken up while the bot runs, and those that need a restart.
func (c Config) Changes(other Config) (reloaded, restart []string) {
	for _, key := range differences("", reflect.ValueOf(c), reflect.ValueOf(other)) {
		general := indexes.ReplaceAllString(key, "[]")
		if slices.ContainsFunc(reloadable, func(r string) bool { return general == r || strings.HasPrefix(general, r+".") }) {
			reloaded = append(reloaded, key)
		} else {
			restart = append(restart, key)
		}
	}
	return reloaded, restart
}

// indexes are the numbers in a key.
var indexes = regexp.MustCompile(`\[\d+\]`)

// differences are the keys below at with different values.
func differences(at string, a, b reflect.Value) []string {
	switch {
	case a.Kind() == reflect.Struct && hasKeys(a.Type()):
		var all []string
		for i := range a.NumField() {
			if f := a.Type().Field(i); f.IsExported() {
				all = append(all, differences(strings.TrimPrefix(at+"."+f.Tag.Get("yaml"), "."), a.Field(i), b.Field(i))...)
			}
		}
		return all
	case a.Kind() == reflect.Slice && a.Type().Elem().Kind() == reflect.Struct && a.Len() == b.Len():
		var all []string
		for i := range a.Len() {
			all = append(all, differences(fmt.Sprintf("%s[%d]", at, i), a.Index(i), b.Index(i))...)
		}
		return all
	case reflect.DeepEqual(a.Interface(), b.Interface()):
		return nil
	}
	return []string{at}
}

// hasKeys reports whether the fields of the type are keys of the file.
func hasKeys(t reflect.Type) bool {
	for f := range t.Fields() {
		if f.IsExported() && f.Tag.Get("yaml") == "" {
			return false
		}
	}
	return true
}
