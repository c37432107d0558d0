#!/bin/sh
# sh debian-sid.sh PACKAGE FOLDER LEFT_OUT: fetches a package of Debian's next release with what it depends on, except the
# packages that match LEFT_OUT, and unpacks them into FOLDER. It installs nothing: apt runs with a configuration of its own.
set -eu
mkdir -p "$(dirname "$2")"
folder=$(mktemp -d "$2.XXXXXX")
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/state/lists/partial" "$folder/cache/archives/partial" "$folder/packages" "$folder/root"
touch "$folder/status"
mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep -m 1 '/debian/\?$')
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror sid main" > "$folder/sources.list"
cat > "$folder/apt.conf" <<END
Dir::State "$folder/state";
Dir::State::status "$folder/status";
Dir::Cache "$folder/cache";
Dir::Etc::sourcelist "$folder/sources.list";
Dir::Etc::sourceparts "-";
APT::Install-Recommends "false";
APT::Sandbox::User "root";
END
export APT_CONFIG="$folder/apt.conf"
apt-get -q update
packages=$(apt-get --print-uris -y install "$1" | sed -n "s/^'[^']*' \([^_ ]*\)_.*/\1/p" | grep -Ev "$3")
cd "$folder/packages"
apt-get -q download $packages
for file in *.deb; do dpkg-deb -x "$file" "$folder/root"; done
test -e "$2" || mv "$folder/root" "$2"
