# A change on top of tidy.sh's, which is applied already: the same files once more.
cat >/root/again.toml <<'E'
name = "again"
title = "Still less memory for graphics."
[[step]]
do = "set_line"
id = "changed"
why = "It was changed before."
path = "/boot/firmware/config.txt"
key = "gpu_mem"
value = "8"
[[step]]
do = "remove_file"
id = "new"
why = "It was new before."
path = "/boot/firmware/extra.txt"
[[step]]
do = "set_line"
id = "text"
why = "It was changed before."
path = "/etc/hosts"
key = "127.0.0.3"
separator = " "
value = "tidier"
[[step]]
do = "write_file"
id = "fresh"
why = "It was new before, and the link leads to it."
path = "/etc/tidy/fresh.conf"
text = "fresher"
[[step]]
do = "write_file"
id = "back"
why = "It was removed before."
path = "/etc/tidy-old.conf"
text = "old=2"
E
rubus apply /root/tidy.toml --yes && sync
