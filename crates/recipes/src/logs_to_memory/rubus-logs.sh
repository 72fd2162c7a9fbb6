#!/bin/sh
# Made by rubus (logs-to-memory): /var/log lies in memory while the system runs. `rubus undo` removes this file.
# start covers /var/log with a copy in memory; save brings to the disk what has changed; stop saves for the last time.
# SIZE_KIB limits the memory for the logs, JOURNAL_KIB the closed journals on the disk.
set -eu
export LC_ALL=C
log=/var/log
# For root alone: nobody else changes the disk's side while files are put there.
base=/run/rubus/logs
disk=$base/disk
memory=$base/memory
# The closed journals on the disk, to be read by whoever may read them.
journal=/run/rubus/journal
new=$disk/.rubus-logs
break='
'

say() { echo "rubus-logs: $*" >&2; }
is_covered() { grep -q '^rubus-logs /var/log tmpfs ' /proc/self/mounts; }
# A sorted list of what is in a tree: not of what is being saved, the links to the closed journals, names with a line break.
list() {
    tree=$1
    shift
    (cd "$tree" && find . -mindepth 1 -xdev \( -path ./.rubus-logs -o -path "*$break*" \) -prune -o \
        -type l -lname "$journal/*" -o "$@") >"$base/unsorted" && sort "$base/unsorted"
}
# A filesystem gives directories sizes and times of its own.
files() {
    list "$1" -type d -empty -printf 'd %m %U:%G 0 0 %p\n' -o \( -type f -o -type l \) -printf '%y %m %U:%G %s %T@ %p\n'
}
directories() { list "$1" -type d -printf '%m %U:%G %p\n'; }
paths() { list "$1" -print; }
is_directory() { [ -d "$1" ] && [ ! -L "$1" ]; }

# What was copied completely takes its place; half a copy goes.
settle() {
    [ -e "$new/complete" ] || { rm -rf "$new"; return; }
    (cd "$new/files" && find . -mindepth 1) >"$base/unsorted" && sort "$base/unsorted" >"$base/moves" || return 1
    while IFS= read -r path; do
        from=$new/files/$path
        to=$disk/$path
        if is_directory "$from"; then
            # A link there would lead out of the logs.
            is_directory "$to" || { rm -f -- "$to" && mv -T -- "$from" "$to"; } || return 1
        elif [ -e "$from" ] || [ -L "$from" ]; then
            if is_directory "$to"; then rm -rf -- "$to" || return 1; fi
            mv -fT -- "$from" "$to" || return 1
        fi
    done <"$base/moves"
    while read -r mode owner path; do
        if is_directory "$disk/$path"; then chown "$owner" "$disk/$path" && chmod "$mode" "$disk/$path" || return 1; fi
    done <"$new/directories"
    while IFS= read -r path; do
        if is_directory "$disk/$path"; then
            rmdir -- "$disk/$path" 2>/dev/null || true
        else
            rm -f -- "$disk/$path" || return 1
        fi
    done <"$new/gone"
    sync -f "$disk" && rm -rf "$new"
}

# Copies what has changed beside the logs on the disk. Nothing of them is touched before all of it is there.
collect() {
    rm -rf "$new"
    paths "$log" >"$base/now" && [ -s "$base/now" ] || return 1
    files "$log" >"$base/in-memory" && files "$disk" >"$base/on-disk" || return 1
    comm -23 "$base/in-memory" "$base/on-disk" | cut -d ' ' -f 6- >"$base/changed"
    # What is written last into a journal leaves its time as it was.
    [ "$1" != stop ] || grep '^\./journal/[^@]*\.journal$' "$base/now" >>"$base/changed" || true
    sort -u -o "$base/changed" "$base/changed" || return 1
    mkdir -m 700 "$new" "$new/files" || return 1
    (cd "$log" && tr '\n' '\0' <"$base/changed" | xargs -0 -r cp -a --sparse=always --parents -t "$new/files" --) || return 1
    directories "$log" >"$base/in-memory" && directories "$disk" >"$base/on-disk" || return 1
    comm -23 "$base/in-memory" "$base/on-disk" >"$new/directories" || return 1
    # The disk keeps more of the journal than the memory has room for.
    comm -23 "$base/known" "$base/now" >"$base/gone" || return 1
    sed '/^\.\/journal\//d' "$base/gone" | sort -r >"$new/gone" || return 1
    sync -f "$new" && : >"$new/complete" && sync -f "$new"
}

save() {
    is_covered || { say "/var/log is not in memory: nothing to save"; return; }
    settle || { say "what was copied before cannot take its place"; return 1; }
    # A file may go while it is being copied; a full disk stays full.
    collect "$1" || { sleep 1 && collect "$1"; } || {
        rm -rf "$new"
        say "what has changed does not fit on the disk, which keeps the logs of the last time"
        return 1
    }
    settle || return 1
    mv "$base/now" "$base/known"
    [ -d "$disk/journal" ] || return 0
    journalctl --quiet --directory="$disk/journal" --vacuum-size="$(cat "$base/journal-kib")K" || true
    if [ -d "$log/journal" ]; then find "$log/journal" -xtype l -lname "$journal/*" -delete; fi
}

# The journal begins anew in memory: what is on the disk is closed, and shown by links.
link_journals() {
    find "$disk/journal" -type f -name '*.journal' ! -name '*@*' >"$base/open"
    while IFS= read -r file; do
        stamp=$(printf '%016x' "$(date -r "$file" +%s%6N)")
        mv -nT "$file" "${file%.journal}@$stamp-$(od -An -N8 -tx8 /dev/urandom | tr -d ' ').journal~" || return 1
    done <"$base/open"
    mkdir -p "$journal"
    mount --bind "$disk/journal" "$journal" || return 1
    mount --make-private "$journal" && mount -o remount,bind,ro "$journal" || return 1
    cp -as "$journal" "$memory/"
}

fill() {
    settle || return 1
    used=$(cd "$disk" && du -skx --exclude=./journal . | cut -f 1)
    if [ $((used * 4)) -gt $((SIZE_KIB * 3)) ]; then
        say "$used KiB of logs leave no room in $SIZE_KIB KiB of memory"
        return 1
    fi
    mount -t tmpfs -o "size=${SIZE_KIB}k,mode=755,nosuid,nodev,noexec" rubus-logs "$memory" || return 1
    chown --reference="$disk" "$memory" && chmod --reference="$disk" "$memory" || return 1
    (cd "$disk" && find . -mindepth 1 -maxdepth 1 ! -name journal ! -name .rubus-logs -exec cp -a -t "$memory" -- {} +) || return 1
    if [ -d "$disk/journal" ]; then link_journals || return 1; fi
    paths "$memory" >"$base/known"
}

release() { for place in "$journal" "$memory" "$disk"; do umount "$place" 2>/dev/null || true; done; }

start() {
    mkdir -p "$base"
    chmod 700 "$base"
    echo "$JOURNAL_KIB" >"$base/journal-kib"
    # Undoing removes the unit and this file; the stop after it needs them.
    cp "$0" "$base/program"
    mkdir -p /run/systemd/system
    cp /etc/systemd/system/rubus-logs.service /run/systemd/system/
    is_covered && return
    # By hand, or for another unit, it is too late: programs have logs open, which would be written over.
    if [ "$(systemctl is-system-running)" != initializing ]; then
        say "the logs stay on the disk until the next start"
        [ ! -e "$base/failed" ]
        return
    fi
    : >"$base/failed"
    [ ! -L "$log" ] || { say "/var/log is a link"; return 1; }
    mkdir -p "$disk" "$memory"
    release
    mount --bind "$log" "$disk"
    mount --make-private "$disk"
    if fill && mount --bind "$memory" "$log"; then
        umount "$memory"
        rm "$base/failed"
        return
    fi
    say "the logs stay on the disk"
    release
    return 1
}

case "${1-}" in
start) start ;;
save) journalctl --sync || true; save save ;;
stop) save stop ;;
*) say "start, save or stop"; exit 2 ;;
esac
