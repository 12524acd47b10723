package uistream

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// sessionPath is where a browser exchanges its credential for a cookie, and gives the
// cookie back.
const sessionPath = Path + "/session"

// The cookie holds the credential itself, so it proves the same person, expires and is
// revoked with the credential, and nothing else has to be stored or signed. Because of
// the prefix of its name, browsers accept it from this host only and send it to no
// other.
const (
	cookieName = "__Host-countersign"
	cookieAge  = 8 * time.Hour
	maxCookie  = 3900 // bytes: browsers drop larger ones
)

// token68 is the form of a credential that a cookie can hold as it is.
var token68 = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)

func cookie(value string, age time.Duration) *http.Cookie {
	seconds := int(age.Seconds())
	if seconds == 0 {
		seconds = -1 // delete it
	}
	return &http.Cookie{
		Name: cookieName, Value: value, Path: "/", MaxAge: seconds,
		Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}
}

// fromCookie returns the request with the credential of its cookie in the header, if
// it has no other credential. Browsers send a cookie whichever page makes the request,
// so a request of a page that is not listed is refused.
func (s *Server) fromCookie(r *http.Request) (*http.Request, error) {
	all := r.CookiesNamed(cookieName)
	if !s.c.Cookies || len(all) != 1 || len(r.Header.Values("Authorization")) > 0 || r.URL.Path == sessionPath {
		return r, nil
	}
	if err := s.ofPage(r); err != nil {
		return r, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+all[0].Value)
	return r, nil
}

// ofPage refuses a request of a page of another origin, unless that origin is listed.
// It also refuses a request that changes something and has neither an Origin nor a
// Sec-Fetch-Site header: every browser sends one of them.
func (s *Server) ofPage(r *http.Request) error {
	site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin")
	changes := r.Method != http.MethodGet && r.Method != http.MethodHead
	if s.cross.Check(r) == nil && (origin != "" || site == "same-origin" || site == "none" || site == "" && !changes) {
		return nil
	}
	return refuse(http.StatusForbidden, "A page of another site sent this request. Nothing was done.")
}

// signIn is POST /api/chat/session: it stores the credential of the header in a cookie.
// A credential that came in a cookie is not accepted, so a cookie does not renew itself.
func (s *Server) signIn(c caller) error {
	_, token, _ := strings.Cut(c.r.Header.Get("Authorization"), " ")
	token = strings.Trim(token, " ")
	if len(token) > maxCookie || !token68.MatchString(token) {
		return refuse(http.StatusUnprocessableEntity, fmt.Sprintf("A cookie can't hold this credential: it must have at most %d letters, digits and -._~+/=.", maxCookie))
	}
	http.SetCookie(c.w, cookie(token, cookieAge))
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// signOut is DELETE /api/chat/session. It needs no credential, because that may have
// expired.
func (s *Server) signOut(w http.ResponseWriter, r *http.Request) {
	if err := s.ofPage(r); err != nil {
		s.problemOf(r, err).write(w)
		return
	}
	http.SetCookie(w, cookie("", 0))
	w.WriteHeader(http.StatusNoContent)
}
