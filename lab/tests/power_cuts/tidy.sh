# Files of both filesystems for power cuts: text files, a directory, a link and a removal on ext4; an old and a new name on FAT.
cat >/root/tidy.toml <<'E'
name = "tidy"
title = "Less memory for graphics."
[[step]]
do = "write_file"
id = "new"
why = "It is a new name."
path = "/boot/firmware/extra.txt"
text = "arm_boost=1"
[[step]]
do = "set_line"
id = "changed"
why = "Nobody looks at a screen here."
path = "/boot/firmware/config.txt"
key = "gpu_mem"
value = "16"
[[step]]
do = "set_line"
id = "text"
why = "A text file of the root filesystem."
path = "/etc/hosts"
key = "127.0.0.3"
separator = " "
value = "tidy"
[[step]]
do = "write_file"
id = "fresh"
why = "A new file in a new directory."
path = "/etc/tidy/fresh.conf"
text = "fresh"
[[step]]
do = "set_link"
id = "link"
why = "A link."
path = "/etc/tidy/link"
to = "fresh.conf"
[[step]]
do = "remove_file"
id = "gone"
why = "It is not needed."
path = "/etc/tidy-old.conf"
E
echo old=1 >/etc/tidy-old.conf; sync
