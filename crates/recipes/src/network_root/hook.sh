#!/bin/sh
# Made by rubus (network-root). Puts what it takes to reach the root over the network into the initial RAM filesystem: the
# program that attaches it, the driver of network disks, and the drivers of the network cards that are in use.
case $1 in prereqs) exit 0 ;; esac
. /usr/share/initramfs-tools/hook-functions
set -e

copy_exec @PROGRAM@ @HELPER@
copy_exec /sbin/blkid /sbin
manual_add_modules nbd @KIND@
drivers=$(sed -n '/\/wireless\//d; s/:.*//; s/-/_/g; /\/drivers\/net\//p' "/lib/modules/$version/modules.dep")
while read -r module rest; do
  case $drivers in *"/$module.ko"*) manual_add_modules "$module" ;; esac
done </proc/modules
