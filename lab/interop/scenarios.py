"""Scenarios for an NBD server, driven step by step with libnbd.

Called with the address of a server of three exports: "disk", 64 MiB of zeros; "fixed", read-only, which begins with an
"f"; and "huge", 16 GiB of zeros. Each scenario is a function; the first assertion that does not hold ends the program.
"""

import errno
import os
import sys

import nbd

ADDRESS = sys.argv[1]
MIB = 1 << 20
SIZE = 64 * MIB


def handle(**settings):
    """A handle that is not connected, with e.g. structured_replies=False set."""
    h = nbd.NBD()
    h.add_meta_context(nbd.CONTEXT_BASE_ALLOCATION)
    for name, value in settings.items():
        getattr(h, "set_" + name)(value)
    return h


def negotiating(**settings):
    """A handle in the negotiation, before an export was chosen."""
    h = nbd.NBD()
    # Nothing is asked for but what the scenario asks for.
    h.set_opt_mode(True)
    h.set_request_meta_context(False)
    for name, value in settings.items():
        getattr(h, "set_" + name)(value)
    h.connect_uri(ADDRESS)
    assert h.aio_is_negotiating()
    return h


def refused(what, *arguments, code=None, **named):
    """The call fails; with this error number, if one is given."""
    try:
        what(*arguments, **named)
    except nbd.Error as error:
        if code is not None:
            assert error.errnum == code, error
        return error
    raise AssertionError(f"{what} was not refused")


def extents(h, offset, count):
    """What the server says of a range: (length, flags) each."""
    found = []
    def take(name, at, entries, error):
        assert (name, at, error.value) == (nbd.CONTEXT_BASE_ALLOCATION, offset, 0)
        found.extend(zip(entries[::2], entries[1::2]))
    h.block_status(count, offset, take)
    return found


def extents_64(h, offset, count):
    found = []
    def take(name, at, entries, error):
        assert (name, at, error.value) == (nbd.CONTEXT_BASE_ALLOCATION, offset, 0)
        found.extend(entries)
    h.block_status_64(count, offset, take)
    return found


HOLE = nbd.STATE_HOLE | nbd.STATE_ZERO


def exports_are_listed():
    h = negotiating()
    found = []
    assert h.opt_list(lambda name, description: found.append((name, description))) == 3
    assert [name for name, _ in found] == ["disk", "fixed", "huge"], found
    # As often as one likes, and an answer for one leaves the others possible.
    assert h.opt_list(lambda name, description: None) == 3
    h.opt_abort()
    assert h.aio_is_closed()


def each_option_alone_and_twice():
    h = negotiating(request_structured_replies=False, request_extended_headers=False)
    assert not h.get_structured_replies_negotiated()
    h.set_export_name("disk")
    # Contexts need structured replies first.
    refused(h.opt_list_meta_context, lambda name: None)
    refused(h.opt_set_meta_context_queries, [nbd.CONTEXT_BASE_ALLOCATION], lambda name: None)
    assert h.opt_structured_reply()
    assert not h.opt_structured_reply(), "a second time it is refused, and nothing is broken"
    names = []
    assert h.opt_list_meta_context(names.append) >= 1
    assert nbd.CONTEXT_BASE_ALLOCATION in names, names
    names = []
    h.opt_list_meta_context_queries(["base:"], names.append)
    assert names == [nbd.CONTEXT_BASE_ALLOCATION], names
    names = []
    assert h.opt_list_meta_context_queries(["other:thing", "base:nothing"], names.append) == 0
    assert names == []
    # The answer to the last one holds.
    assert h.opt_set_meta_context_queries(["other:thing"], names.append) == 0
    assert not h.can_meta_context(nbd.CONTEXT_BASE_ALLOCATION)
    assert h.opt_set_meta_context_queries([nbd.CONTEXT_BASE_ALLOCATION], names.append) == 1
    assert h.can_meta_context(nbd.CONTEXT_BASE_ALLOCATION)
    # TLS is not offered here: refused, and the negotiation goes on.
    assert not h.opt_starttls()
    h.set_export_name("disk")
    h.opt_info()
    assert h.get_size() == SIZE
    assert h.get_block_size(nbd.SIZE_MINIMUM) == 1
    assert h.get_block_size(nbd.SIZE_MAXIMUM) == 32 * MIB
    h.set_export_name("there is none")
    refused(h.opt_info, code=errno.ENOENT)
    refused(h.opt_go, code=errno.ENOENT)
    h.set_export_name("fixed")
    h.opt_info()
    assert h.is_read_only()
    h.set_export_name("disk")
    h.opt_go()
    assert h.aio_is_ready() and not h.is_read_only()
    assert h.pread(512, 0) == bytes(512)
    h.shutdown()


def contexts_belong_to_the_export_that_they_were_asked_for():
    h = negotiating()
    h.set_export_name("fixed")
    assert h.opt_set_meta_context_queries([nbd.CONTEXT_BASE_ALLOCATION], lambda name: None) == 1
    h.set_export_name("disk")
    h.opt_go()
    # libnbd goes by what it asked for, so it is the server that refuses.
    h.set_strict_mode(0)
    refused(h.block_status, 512, 0, lambda *_: None, code=errno.EINVAL)
    assert h.pread(512, 0) == bytes(512)
    h.shutdown()


def the_old_way_in():
    # A client that does not know fixed newstyle, and so only NBD_OPT_EXPORT_NAME.
    for flags in (0, nbd.HANDSHAKE_FLAG_NO_ZEROES, nbd.HANDSHAKE_FLAG_FIXED_NEWSTYLE):
        h = handle(handshake_flags=flags, export_name="disk")
        h.connect_uri(ADDRESS + "/disk")
        assert h.get_size() == SIZE
        h.pwrite(b"old", 5)
        assert h.pread(3, 5) == b"old"
        h.zero(512, 0)
        h.shutdown()


def written_bytes_come_back(**settings):
    h = handle(**settings)
    h.connect_uri(ADDRESS + "/disk")
    with_replies = h.get_structured_replies_negotiated()
    assert with_replies == settings.get("request_structured_replies", True)
    pattern = os.urandom(3 * MIB + 7)
    h.pwrite(pattern, 4093)
    assert h.pread(len(pattern), 4093) == pattern
    h.pwrite(pattern[:4096], 0, nbd.CMD_FLAG_FUA)
    # Zeros and trims that begin and end within blocks.
    h.zero(70_000, 8191, nbd.CMD_FLAG_NO_HOLE)
    h.zero(70_001, 100_003, nbd.CMD_FLAG_FUA)
    h.trim(MIB, 2 * MIB + 1, nbd.CMD_FLAG_FUA)
    h.cache(MIB, MIB)
    h.flush()
    expected = bytearray(4093) + pattern
    expected[:4096] = pattern[:4096]
    expected[8191:8191 + 70_000] = bytes(70_000)
    expected[100_003:100_003 + 70_001] = bytes(70_001)
    got = h.pread(len(expected), 0)
    assert got[:2 * MIB + 1] == expected[:2 * MIB + 1]
    assert got[3 * MIB + 1:] == expected[3 * MIB + 1:]
    trimmed = set(zip(got[2 * MIB + 1:3 * MIB + 1], expected[2 * MIB + 1:3 * MIB + 1]))
    assert all(now in (0, before) for now, before in trimmed), "trimmed bytes are what they were, or zeros"
    try:
        h.zero(MIB, 40 * MIB, nbd.CMD_FLAG_FAST_ZERO)
    except nbd.Error as error:
        assert error.errnum == errno.ENOTSUP, error
    if with_replies:
        pieces = []
        def take(data, offset, kind, error):
            pieces.append((offset, len(data), kind))
        h.pread_structured(MIB, 0, take, nbd.CMD_FLAG_DF)
        assert len(pieces) == 1, pieces
        # Many holes are not many pieces for one that asked not to fragment.
        for at in range(50 * MIB, 51 * MIB, 128 << 10):
            h.pwrite(b"x" * 4096, at)
        pieces.clear()
        h.pread_structured(MIB, 50 * MIB, take, nbd.CMD_FLAG_DF)
        assert len(pieces) == 1, pieces
        pieces.clear()
        h.pread_structured(MIB, 50 * MIB, take)
        assert sum(length for _, length, _ in pieces) == MIB
    h.trim(SIZE, 0)
    h.zero(SIZE, 0)
    h.shutdown()


def wrong_requests_have_the_right_errors(**settings):
    h = handle(**settings)
    h.connect_uri(ADDRESS + "/disk")
    h.set_strict_mode(0)
    refused(h.pread, 512, SIZE - 511, code=errno.EINVAL)
    refused(h.pread, 512, (1 << 63) - 512, code=errno.EINVAL)
    refused(h.pwrite, bytes(512), SIZE - 511, code=errno.ENOSPC)
    refused(h.zero, 512, SIZE - 511, code=errno.ENOSPC)
    refused(h.trim, 512, SIZE - 511, code=errno.EINVAL)
    refused(h.cache, 512, SIZE - 511, code=errno.EINVAL)
    # Flags that do not belong there, and an unknown one.
    refused(h.pread, 512, 0, nbd.CMD_FLAG_FAST_ZERO, code=errno.EINVAL)
    refused(h.pwrite, bytes(512), 0, nbd.CMD_FLAG_REQ_ONE, code=errno.EINVAL)
    # After all of this it is as good as new.
    h.pwrite(b"still here", 7)
    assert h.pread(10, 7) == b"still here"
    h.zero(512, 0)
    h.shutdown()


def nothing_is_written_to_what_is_read_only():
    h = handle()
    h.connect_uri(ADDRESS + "/fixed")
    assert h.is_read_only()
    assert not (h.can_trim() or h.can_zero())
    h.set_strict_mode(0)
    refused(h.pwrite, b"x", 0, code=errno.EPERM)
    refused(h.zero, 512, 0, code=errno.EPERM)
    refused(h.trim, 512, 0, code=errno.EPERM)
    assert h.pread(1, 0) == b"f"
    h.shutdown()


def block_status_keeps_within_its_bounds(**settings):
    h = handle(**settings)
    h.connect_uri(ADDRESS + "/disk")
    h.zero(SIZE, 0)
    h.pwrite(b"d" * 65536, 10 * MIB)
    h.flush()
    ask = extents_64 if settings.get("request_extended_headers") else extents
    whole = ask(h, 0, SIZE)
    assert sum(length for length, _ in whole) == SIZE, whole
    assert whole[0] == (10 * MIB, HOLE), whole
    assert whole[1][1] == 0 and 65536 <= whole[1][0] <= 65536 + 65536, whole
    assert whole[-1][1] == HOLE
    # From within a hole into data, from within data, and the last byte.
    across = ask(h, 10 * MIB - 4096, 8192)
    assert across[:2] == [(4096, HOLE), (4096, 0)] or across[1][1] == 0, across
    inside = ask(h, 10 * MIB + 512, 512)
    assert inside[0][1] == 0 and inside[0][0] >= 512, inside
    last = ask(h, SIZE - 1, 1)
    assert last == [(1, HOLE)], last
    one = []
    def take(name, at, entries, error):
        one.extend(entries)
    h.block_status_64(SIZE, 0, take, nbd.CMD_FLAG_REQ_ONE)
    assert one == [(10 * MIB, HOLE)], one
    h.set_strict_mode(0)
    refused(h.block_status_64, 512, SIZE, take, code=errno.EINVAL)
    h.zero(SIZE, 0)
    h.shutdown()


def one_flush_is_everybodys():
    writer, other = handle(), handle()
    for h in (writer, other):
        h.connect_uri(ADDRESS + "/disk")
        assert h.can_multi_conn()
    writer.pwrite(b"shared", 1000)
    assert other.pread(6, 1000) == b"shared"
    other.flush()
    other.zero(512, 1000)
    assert writer.pread(6, 1000) == bytes(6)
    writer.shutdown()
    other.shutdown()


def many_in_flight_come_back_each_to_its_own():
    h = handle()
    h.connect_uri(ADDRESS + "/disk")
    content = os.urandom(MIB)
    writes = [h.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(content[at:at + 4096])), at)
              for at in range(0, MIB, 4096)]
    def end(cookies):
        while cookies:
            h.poll(-1)
            cookies = [cookie for cookie in cookies if not h.aio_command_completed(cookie)]
    end(writes)
    buffers = [nbd.Buffer(4096) for _ in range(0, MIB, 4096)]
    # Backwards, so that answers in the order of the offsets would be found out.
    order = list(enumerate(buffers))[::-1]
    end([h.aio_pread(buffer, number * 4096) for number, buffer in order])
    assert b"".join(bytes(buffer.to_bytearray()) for buffer in buffers) == content
    h.zero(MIB, 0)
    h.shutdown()


def extended_headers_are_agreed_on():
    h = negotiating(request_structured_replies=False, request_extended_headers=False)
    assert h.opt_extended_headers()
    assert h.get_extended_headers_negotiated()
    # They bring structured replies with them, which are refused from now on.
    refused_or_false = False
    try:
        refused_or_false = not h.opt_structured_reply()
    except nbd.Error:
        refused_or_false = True
    assert refused_or_false
    h.set_export_name("disk")
    h.opt_go()
    h.pwrite(b"extended", 3 * MIB + 1)
    assert h.pread(8, 3 * MIB + 1) == b"extended"
    h.zero(MIB, 3 * MIB)
    h.shutdown()
    # Who asks for structured replies first may still extend them.
    h = negotiating(request_structured_replies=False, request_extended_headers=False)
    assert h.opt_structured_reply()
    assert h.opt_extended_headers()
    h.set_export_name("disk")
    h.opt_go()
    assert h.get_extended_headers_negotiated()
    assert h.pread(512, 0) == bytes(512)
    h.shutdown()


def requests_beyond_four_gib():
    gib = 1 << 30
    h = handle(request_extended_headers=True)
    h.connect_uri(ADDRESS + "/huge")
    assert h.get_extended_headers_negotiated()
    assert h.get_size() == 16 * gib
    h.pwrite(b"begin", 0)
    h.pwrite(b"end", 6 * gib - 3)
    h.pwrite(b"beyond", 6 * gib)
    h.flush()
    found = extents_64(h, 0, 16 * gib)
    assert sum(length for length, _ in found) == 16 * gib, found
    assert max(length for length, flags in found if flags == HOLE) > 4 * gib, found
    h.zero(6 * gib, 0)
    assert h.pread(5, 0) == bytes(5)
    assert h.pread(9, 6 * gib - 3) == bytes(3) + b"beyond"
    h.trim(10 * gib, 6 * gib)
    assert h.pread(6, 6 * gib) in (b"beyond", bytes(6))
    h.cache(8 * gib, 0)
    h.set_strict_mode(0)
    refused(h.zero, 12 * gib, 5 * gib, code=errno.ENOSPC)
    h.zero(16 * gib, 0)
    assert extents_64(h, 0, 16 * gib) == [(16 * gib, HOLE)]
    h.shutdown()
    # Without extended headers, what is told stays below 4 GiB.
    h = handle(request_extended_headers=False)
    h.connect_uri(ADDRESS + "/huge")
    told = extents(h, 0, (1 << 32) - 65536)
    assert told and all(flags == HOLE for _, flags in told), told
    assert sum(length for length, _ in told) <= 16 * gib
    h.shutdown()


WAYS = [
    {"request_structured_replies": False, "request_extended_headers": False},
    {"request_extended_headers": False},
    {"request_extended_headers": True},
]

SCENARIOS = [
    exports_are_listed,
    each_option_alone_and_twice,
    contexts_belong_to_the_export_that_they_were_asked_for,
    the_old_way_in,
    *[lambda way=way: written_bytes_come_back(**way) for way in WAYS],
    *[lambda way=way: wrong_requests_have_the_right_errors(**way) for way in WAYS],
    nothing_is_written_to_what_is_read_only,
    *[lambda way=way: block_status_keeps_within_its_bounds(**way) for way in WAYS[1:]],
    one_flush_is_everybodys,
    many_in_flight_come_back_each_to_its_own,
    extended_headers_are_agreed_on,
    requests_beyond_four_gib,
]

for scenario in SCENARIOS:
    scenario()
print(f"{len(SCENARIOS)} scenarios")
