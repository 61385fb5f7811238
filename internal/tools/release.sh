#!/bin/sh
# Completes a release in the directory that "make dist" has filled: archives per
# platform, Debian packages, the chart, the compose files, checksums and their
# signature. The same input, key and SOURCE_DATE_EPOCH give the same bytes.
#
#	release.sh VERSION DIST SHARE KEY
#
# SHARE holds manual pages and completions. KEY is the file of a private key of OpenSSH,
# an Ed25519 key whose public part is in deploy/allowed_signers, or in $SIGNERS.
set -eu
version=${1#v} share=$3 key=$4
dist=$(cd "$2" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
signers=${SIGNERS:-$root/deploy/allowed_signers}
: "${SOURCE_DATE_EPOCH:?is needed: the time of the commit}"
umask 022

fail() {
	echo "release: $1" >&2
	exit 1
}

tar --version 2>/dev/null | grep -q GNU || fail "GNU tar is needed: it writes the same bytes each time"
command -v dpkg-deb >/dev/null || fail "dpkg-deb is needed for the Debian packages: apt install dpkg"
case $version in
*-dirty) fail "there are changes that are not committed" ;;
esac
public=$(ssh-keygen -y -f "$key" | cut -d' ' -f1,2) || fail "KEY is not a private key of OpenSSH: ssh-keygen -t ed25519 -f FILE makes one"
case $public in
ssh-ed25519*) ;;
*) fail "the key is not an Ed25519 key, whose signatures are the same each time" ;;
esac
grep -qF "$public" "$signers" || fail "$signers does not have this key. Add the line, and commit it:
releases namespaces=\"proofline-release\" $public"

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

# archive NAME FILE: packs the folder NAME of the stage into dist/FILE.
archive() {
	tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" \
		--format=ustar -C "$stage" -cf - "$1" | gzip -9n >"$dist/$2"
}

for binary in "$dist"/proofline-verify-*-*; do
	platform=${binary##*/proofline-verify-}
	name=proofline-$version-$platform
	mkdir "$stage/$name"
	for program in proofline proofline-verify; do
		install -m 755 "$dist/$program-$platform" "$stage/$name/$program"
	done
	cp -R "$root/LICENSE" "$root/CHANGELOG.md" "$share" "$stage/$name/"
	case $platform in
	linux-*)
		mkdir "$stage/$name/systemd"
		cp "$root"/deploy/systemd/* "$stage/$name/systemd/"
		arch=${platform#linux-}
		mkdir "$stage/$arch"
		ln "$stage/$name/proofline" "$stage/$name/proofline-verify" "$stage/$arch/"
		"$root/deploy/debian/build.sh" "$1" "$arch" "$stage/$arch" "$share" "$dist"
		;;
	esac
	archive "$name" "$name.tar.gz"
	rm -rf "${stage:?}/$name"
done

# The chart's version is the program's, and it names the image of that version.
cp -R "$root/deploy/helm/proofline" "$stage/proofline"
sed -E "s/^(version|appVersion): .*/\1: $version/" "$root/deploy/helm/proofline/Chart.yaml" >"$stage/proofline/Chart.yaml"
archive proofline "proofline-chart-$version.tgz"

mkdir "$stage/proofline-compose"
cp "$root/deploy/compose.yaml" "$stage/proofline-compose/"
mkdir "$stage/proofline-compose/compose"
for file in Caddyfile roles.sh secrets.sh; do
	cp "$root/deploy/compose/$file" "$stage/proofline-compose/compose/"
done
archive proofline-compose "proofline-compose-$version.tar.gz"

cd "$dist"
rm -f SHA256SUMS SHA256SUMS.sig
sha256sum -- * >"$stage/SHA256SUMS"
mv "$stage/SHA256SUMS" SHA256SUMS
ssh-keygen -Y sign -q -n proofline-release -f "$key" SHA256SUMS
ssh-keygen -Y verify -f "$signers" -I releases -n proofline-release -s SHA256SUMS.sig <SHA256SUMS
