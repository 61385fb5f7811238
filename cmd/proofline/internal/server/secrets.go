package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/proofline/proofline/cmd/proofline/internal/secret"
	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/room/pgroom"
)

// openSecrets reads the management token and the master key, and creates those that
// are missing.
func (s *Server) openSecrets(ctx context.Context) error {
	file := cmp.Or(s.cfg.TokenFile, filepath.Join(s.cfg.Data, TokenFile))
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		s.Token, err = secret.Ensure(file, func() (string, error) { return secret.NewToken(), nil })
	}
	if err != nil {
		return fmt.Errorf("management token: %w", err)
	}
	text, err := s.masterKeyText(ctx)
	if err == nil {
		s.masterKey, err = keys.ParseMasterKey(text)
	}
	if err != nil {
		return fmt.Errorf("master key: %w", err)
	}
	return nil
}

func (s *Server) masterKeyText(ctx context.Context) (string, error) {
	given := s.cfg.MasterKey
	if given == "" {
		file := filepath.Join(s.cfg.Data, MasterKeyFile)
		return secret.Ensure(file, func() (string, error) { return s.newMasterKey(ctx) })
	}
	if _, err := keys.ParseMasterKey(given); err == nil {
		return given, nil
	}
	text, err := secret.Read(given)
	if errors.Is(err, fs.ErrNotExist) { // it may be a mistyped key, so the error must not quote it
		return "", fmt.Errorf("%w: the given value is neither a key nor the name of a file", keys.ErrMasterKey)
	}
	return text, err
}

// newMasterKey creates a key for a database without rooms. If there are rooms, the
// key's file was lost, and a new key would only hide that.
func (s *Server) newMasterKey(ctx context.Context) (string, error) {
	rooms, err := pgroom.NewStore(s.pool).List(ctx)
	if err == nil && len(rooms) > 0 {
		err = fmt.Errorf("%w: %d rooms need %s", ErrKeyLost, len(rooms), filepath.Join(s.cfg.Data, MasterKeyFile))
	}
	if err != nil {
		return "", err
	}
	return keys.NewMasterKey(), nil
}
