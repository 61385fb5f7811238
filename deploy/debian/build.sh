#!/bin/sh
# Builds a Debian package from built programs. The same input and SOURCE_DATE_EPOCH
# give the same bytes.
#
#	build.sh VERSION ARCH PROGRAMS SHARE OUT
#
# PROGRAMS holds proofline and proofline-verify, and SHARE what they write with
# "manual". DEB_LEVEL is that of xz, 0 to 9. The package is OUT/proofline_VERSION_ARCH.deb, its name is printed.
set -eu
version=$1 arch=$2 programs=$3 share=$4 out=$5
here=$(dirname "$0")
deploy=$here/..
root=$here/../..
: "${SOURCE_DATE_EPOCH:?is needed: the time of the commit}"
umask 022

# v0.1.0-rc.1 is older than 0.1.0, and commits after a tag are newer. Without a tag
# the version is older than all.
version=$(echo "$version" | sed -E 's/^v//; s/-dirty$/+dirty/; s/-([0-9]+)-g([0-9a-f]+)/+\1.g\2/; s/-/~/g')
echo "$version" | grep -Eq '^[0-9]+\.[0-9]+' || version=0.0.0~$version

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
chmod 755 "$stage"

# put MODE FILE TO: copies a file into the package.
put() { install -D -m "$1" "$2" "$stage/$3"; }

# packed FILE TO: puts a file compressed without its name and time.
packed() {
	mkdir -p "$(dirname "$stage/$2")"
	gzip -9nc "$1" >"$stage/$2"
	chmod 644 "$stage/$2"
}

for program in proofline proofline-verify; do
	put 755 "$programs/$program" "usr/bin/$program"
	put 644 "$share/bash-completion/completions/$program" "usr/share/bash-completion/completions/$program"
	put 644 "$share/zsh/vendor-completions/_$program" "usr/share/zsh/vendor-completions/_$program"
	put 644 "$share/fish/vendor_completions.d/$program.fish" "usr/share/fish/vendor_completions.d/$program.fish"
done
for page in "$share"/man/man1/*.1; do
	packed "$page" "usr/share/man/man1/$(basename "$page").gz"
done
for unit in "$deploy"/systemd/*.service; do
	put 644 "$unit" "usr/lib/systemd/system/$(basename "$unit")"
done
put 644 "$deploy/systemd/sysusers.conf" usr/lib/sysusers.d/proofline.conf
put 644 "$deploy/systemd/tmpfiles.conf" usr/lib/tmpfiles.d/proofline.conf

# Settings may hold secrets; systemd reads them as root.
for settings in "$deploy"/systemd/*.env; do
	put 600 "$settings" "etc/proofline/$(basename "$settings")"
done

doc=usr/share/doc/proofline
put 644 "$root/LICENSE" $doc/copyright
packed "$root/CHANGELOG.md" $doc/changelog.gz
put 644 "$deploy/systemd/issuer.yaml" $doc/examples/issuer.yaml
put 644 "$deploy/prometheus/alerts.yaml" $doc/examples/prometheus/alerts.yaml
for dashboard in "$deploy"/grafana/*.json; do
	put 644 "$dashboard" "$doc/examples/grafana/$(basename "$dashboard")"
done

mkdir "$stage/DEBIAN"
(cd "$stage" && find etc -type f | LC_ALL=C sort | sed 's|^|/|') >"$stage/DEBIAN/conffiles"
for script in postinst prerm postrm; do
	put 755 "$here/$script" "DEBIAN/$script"
done
cat >"$stage/DEBIAN/control" <<TEXT
Package: proofline
Version: $version
Architecture: $arch
Maintainer: Proofline <https://github.com/proofline/proofline>
Installed-Size: $(du -sk --apparent-size "$stage/usr" | cut -f1)
Depends: ca-certificates, systemd | systemd-standalone-sysusers
Recommends: postgresql (>= 15)
Suggests: caddy | nginx | haproxy, bash-completion
Section: net
Priority: optional
Homepage: https://github.com/proofline/proofline
Description: virtual waiting room whose queue anyone can verify
 Proofline groups arrivals into time windows and shuffles each window with a seed
 that nobody could choose. Every step is an entry in a public transcript.
 .
 The package has the server, the reverse proxy, the issuer (proofline), and the
 programs of auditors and witnesses (proofline-verify).
TEXT
(cd "$stage" && find etc usr -type f | LC_ALL=C sort | xargs md5sum) >"$stage/DEBIAN/md5sums"
chmod 644 "$stage"/DEBIAN/conffiles "$stage"/DEBIAN/control "$stage"/DEBIAN/md5sums

mkdir -p "$out"
package=$out/proofline_${version}_$arch.deb
dpkg-deb --root-owner-group --threads-max=1 -Zxz -z${DEB_LEVEL:-6} --build "$stage" "$package" >/dev/null
echo "$package"
