package doctor

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/countersign/countersign/internal/plainhttp"
)

// ask makes one request. It follows no redirect: that would carry what is
// signed, or the key, elsewhere.
func (o Options) ask(ctx context.Context, method, at string, body []byte, h http.Header) (status int, answer []byte, err error) {
	client := o.client(Timeout)
	req, err := http.NewRequestWithContext(ctx, method, at, bytes.NewReader(body))
	if err != nil {
		return 0, nil, fmt.Errorf("make the request: %w", err)
	}
	req.Header = h
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, answer, err
}

// client follows no redirect.
func (o Options) client(patience time.Duration) *http.Client {
	return &http.Client{
		Transport: plainhttp.Transport(o.HTTP), Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
