#!/usr/bin/env bash
# package-chart.sh <image> <folder>: packages the Helm chart into the folder, with the image, such as ghcr.io/owner/dawatch, as the
# default of its values. Needs helm on the PATH.
set -euo pipefail
cd "$(dirname "$0")/../.."
image=$1
folder=$2

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r deploy/helm/dawatch "$copy"
values=$copy/dawatch/values.yaml
sed -i "s|^  repository: \"\" #.*|  repository: $image # the image of this release|" "$values"
grep -qF "  repository: $image #" "$values" || { echo "no image.repository in values.yaml" >&2; exit 1; }
helm package "$copy/dawatch" --destination "$folder"
