package openaisim

import "slices"

// A HostedCall is a call that the provider made to a tool of an MCP server.
type HostedCall struct {
	Server, Tool, Args string
	Approval           string // the request for approval that was answered; empty: none was asked for
}

// Host makes the provider call the function for a tool of an MCP server. What an
// error says is the error of the call.
func (s *Server) Host(server, tool string, call func(args string) (string, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hosts == nil {
		s.hosts = map[string]func(string) (string, error){}
	}
	s.hosts[server+"."+tool] = call
}

// Hosted returns the calls that the provider made, in their order.
func (s *Server) Hosted() []HostedCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.hosted)
}

// SkipApproval makes the provider break its contract: from now on it makes calls of
// these tools, by the names that stories use, without asking for approval.
func (s *Server) SkipApproval(tools ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unasked = tools
}

// run makes a call, and returns its output or its error.
func (s *Server) run(c HostedCall) (output, failure *string) {
	s.mu.Lock()
	s.hosted = append(s.hosted, c)
	call := s.hosts[c.Server+"."+c.Tool]
	s.mu.Unlock()
	words := "There is no such tool."
	if call == nil {
		return nil, &words
	}
	text, err := call(c.Args)
	if err != nil {
		words = err.Error()
		return nil, &words
	}
	return &text, nil
}

func (s *Server) skips(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.unasked, name)
}
