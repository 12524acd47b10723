package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// connections is how many requests are on their way at once.
const connections = 64

// A request is one as it goes over the wire.
type request []byte

// newRequest writes a POST.
func newRequest(path string, headers map[string]string, body []byte) request {
	var out bytes.Buffer
	fmt.Fprintf(&out, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n", path, len(body))
	for name, value := range headers {
		fmt.Fprintf(&out, "%s: %s\r\n", name, value)
	}
	out.WriteString("\r\n")
	out.Write(body)
	return out.Bytes()
}

// times are how long each of many requests took, in order, and how long it was from
// the first to the last.
type times struct {
	each   []time.Duration
	all    time.Duration
	failed int
}

func (t times) perSecond() float64 { return float64(len(t.each)) / t.all.Seconds() }

// at is the time within which this part of the requests was answered.
func (t times) at(part float64) time.Duration {
	if len(t.each) == 0 {
		return 0
	}
	return t.each[min(int(part*float64(len(t.each))), len(t.each)-1)]
}

// A load sends requests over a number of connections, which are spread over the
// addresses. Each connection sends a request as soon as its last one was answered. An
// answer that is not 200, or does not contain want, has failed. It is an error if most
// of them have.
type load struct {
	addrs []string
	conns int
	want  string
	// every, if set, is the time between the starts of two requests, whether or
	// not those before are answered. How long one took counts from when it should
	// have started.
	every time.Duration
	// most is how long it goes on: what has not begun then is not sent, except for the
	// first one, so that there is something to measure.
	most time.Duration
	over <-chan struct{} // ends it too
	now  func() time.Time
}

func (l load) send(ctx context.Context, all []request) (times, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	took := make([]time.Duration, len(all))
	var next, failed atomic.Int64
	var workers sync.WaitGroup
	began := l.now()
	for i := range min(l.conns, len(all)) {
		workers.Go(func() {
			if err := l.worker(ctx, l.addrs[i%len(l.addrs)], began, all, &next, &failed, took); err != nil {
				cancel(err)
			}
		})
	}
	workers.Wait()
	out := times{all: l.now().Sub(began), failed: int(failed.Load())}
	out.each = slices.DeleteFunc(took, func(d time.Duration) bool { return d == 0 }) // was not sent
	slices.Sort(out.each)
	if err := context.Cause(ctx); err != nil {
		return times{}, err
	}
	if len(out.each) == 0 {
		return times{}, errors.New("no request was answered in time")
	}
	return out, nil
}

func (l load) worker(ctx context.Context, addr string, began time.Time, all []request, next, failed *atomic.Int64, took []time.Duration) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close()                                          //nolint:errcheck // all was read
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // a request that waits ends
	in := bufio.NewReaderSize(conn, 32<<10)
	for {
		n := int(next.Add(1)) - 1
		if n >= len(all) || n > 0 && l.most > 0 && l.now().Sub(began) > l.most {
			return nil
		}
		start := began.Add(time.Duration(n) * l.every)
		if wait := start.Sub(l.now()); l.every > 0 && wait > 0 {
			if err := sleep(ctx, wait); err != nil {
				return err
			}
		}
		select {
		case <-l.over:
			if n > 0 {
				return nil
			}
		default:
		}
		if l.every == 0 {
			start = l.now()
		}
		refused, err := l.one(conn, in, all[n])
		if err == nil && refused != nil && failed.Add(1) > int64(len(all)/2) {
			err = refused
		}
		if err != nil {
			return err
		}
		took[n] = l.now().Sub(start)
	}
}

// one sends a request. refused says what is wrong with its answer.
func (l load) one(conn net.Conn, in *bufio.Reader, r request) (refused, err error) {
	if _, err := conn.Write(r); err != nil {
		return nil, fmt.Errorf("send: %w", err)
	}
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK || !strings.Contains(string(body), l.want) {
		refused = fmt.Errorf("the answer is %s: %.300s", resp.Status, body)
	}
	return refused, nil
}
