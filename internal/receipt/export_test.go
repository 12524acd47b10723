package receipt

import (
	"crypto/x509"
	"encoding/pem"
)

// PEM is the key as SubjectPublicKeyInfo, the form in which OpenSSL writes it.
func (k Key) PEM() ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(k.public)
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), err
}
