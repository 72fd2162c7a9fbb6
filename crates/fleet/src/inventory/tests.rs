//! Inventories as people write them, and what is wrong with others.

use super::*;

fn boards(file: &str, text: &str) -> Vec<String> {
    let inventory = read(file, text).unwrap();
    let words = |board: &Board| {
        let mut words = format!("{} = {}", board.name, board.destination);
        for setting in &board.settings {
            words += &format!(" {setting}");
        }
        if !board.groups.is_empty() {
            words += &format!(" in {}", board.groups.join(" "));
        }
        words
    };
    inventory.boards.iter().map(words).collect()
}

fn error(file: &str, text: &str) -> String {
    read(file, text).unwrap_err()
}

const INI: &str = r#"
# The shelf.
mail.example.com

[workers]
pi[01:03] ansible_user=pi
nas:2222  ansible_host=10.0.0.9   # moved

[ssd]
pi02 ansible_ssh_private_key_file="~/keys/the ssd"

[workers:vars]
ansible_ssh_common_args='-o ProxyJump=bastion -J x -C'

[shelf:children]
workers

[shelf:vars]
ansible_user = root
ansible_port=22
"#;

#[test]
fn an_ini_inventory_is_read_as_ansible_reads_it() {
    assert_eq!(
        boards("hosts", INI),
        [
            "mail.example.com = mail.example.com",
            "pi01 = pi@pi01 Port=22 ProxyJump=bastion ProxyJump=x in shelf workers",
            "pi02 = pi@pi02 Port=22 IdentityFile=\"~/keys/the ssd\" ProxyJump=bastion ProxyJump=x in shelf ssd workers",
            "pi03 = pi@pi03 Port=22 ProxyJump=bastion ProxyJump=x in shelf workers",
            "nas = root@10.0.0.9 Port=2222 ProxyJump=bastion ProxyJump=x in shelf workers",
        ]
    );
    let notes = read("hosts", INI).unwrap().notes;
    assert_eq!(
        notes,
        ["ansible_ssh_common_args has -C, which is not followed; only -o and -J are"]
    );
}

const YAML: &str = r"---
all:
  vars: &common
    ansible_user: pi
    ansible_become_password: !vault |
      $ANSIBLE_VAULT;1.1;AES256
      6162
  hosts:
    router: {ansible_connection: local}
  children:
    workers:
      hosts:
        pi[08:10]:
        attic:
          <<: *common
          ansible_host: 10.0.0.7
          ansible_port: 2222
          ansible_user: root
    ssd:
      hosts: {pi09: null}
      vars: {labels: [a, b]}
";

#[test]
fn a_yaml_inventory_is_read_as_ansible_reads_it() {
    let expected = [
        "pi08 = pi@pi08 in workers",
        "pi09 = pi@pi09 in ssd workers",
        "pi10 = pi@pi10 in workers",
        "attic = root@10.0.0.7 Port=2222 in workers",
    ];
    assert_eq!(boards("hosts.yml", YAML), expected);
    assert_eq!(boards("hosts", YAML), expected);
    let json = r#"{"all": {"hosts": {"a": {"ansible_port": 5}}}}"#;
    assert_eq!(boards("hosts.json", json), ["a = a Port=5"]);
    let notes = read("hosts.yml", YAML).unwrap().notes;
    assert_eq!(notes, ["router is left out: its connection is local, not ssh"]);
}

const FLEET: &str = r#"
user = "pi"
boards = ["pi[01:02]", "root@nas", "ssh://pi@10.0.0.9:2222"]

[[board]]
name = "attic"
host = "10.0.0.7"
port = 2200

[groups]
ssd = ["attic", "pi02"]
"#;

#[test]
fn a_fleet_file_is_shorter() {
    assert_eq!(
        boards("fleet.toml", FLEET),
        [
            "pi01 = pi@pi01",
            "pi02 = pi@pi02 in ssd",
            "root@nas = root@nas",
            "ssh://pi@10.0.0.9:2222 = ssh://pi@10.0.0.9:2222",
            "attic = pi@10.0.0.7 Port=2200 in ssd",
        ]
    );
    let all = read("fleet.toml", FLEET).unwrap().boards;
    let names = |group: &str| -> Vec<String> {
        let found = super::group(&all, group).unwrap();
        found.into_iter().map(|board| board.name).collect()
    };
    assert_eq!(names("ssd"), ["pi02", "attic"]);
    assert_eq!(names("all").len(), 5);
    assert!(super::group(&all, "hdd").unwrap_err().ends_with("its groups are ssd"));
    assert_eq!(all[4].address().as_deref(), Some("pi@10.0.0.7, Port=2200"));
    assert_eq!(all[2].address(), None);
}

#[test]
fn a_board_that_is_there_twice_is_an_error_with_words() {
    for (file, text, words) in [
        ("a.yml", "all:\n  hosts:\n    pi:\n    pi:\n", "pi is listed twice"),
        ("f.toml", "boards = [\"pi\", \"pi\"]", "pi is listed twice"),
        ("f.toml", "boards = [\"pi@nas\", \"root@NAS\"]", "same address (nas)"),
        ("f.toml", "boards = [\"a\"]\n[groups]\nx = [\"a\", \"a\"]", "twice in the group x"),
    ] {
        let found = error(file, text);
        assert!(found.contains(words), "{text}: {found}");
        assert!(found.starts_with(&format!("cannot read the inventory {file}")));
    }
    // In several groups it is one board.
    assert_eq!(boards("hosts", "[a]\npi\n[b]\npi\n"), ["pi = pi in a b"]);
}

#[test]
fn a_host_that_a_group_lists_twice_is_one_host_as_with_ansible() {
    let twice = "[a]\npi ansible_host=10.0.0.1 ansible_user=pi\n[a]\npi ansible_user=root\n";
    assert_eq!(boards("hosts", twice), ["pi = root@10.0.0.1 in a"]);
    let range = "[a]\npi[1:2]\npi2 ansible_port=2222\n";
    assert_eq!(boards("hosts", range), ["pi1 = pi1 in a", "pi2 = pi2 Port=2222 in a"]);
    let yaml = "all:\n  hosts:\n    pi[1:2]:\n    pi2: {ansible_port: 2222}\n";
    assert_eq!(boards("a.yml", yaml), ["pi1 = pi1", "pi2 = pi2 Port=2222"]);
}

#[test]
fn an_address_is_looked_for_twice_among_the_boards_that_are_chosen() {
    let text = "[a]\none ansible_host=10.0.0.7 ansible_user=pi\n[b]\ntwo ansible_host=10.0.0.7\n";
    let all = read("hosts", text).unwrap().boards;
    let error = check(&all).unwrap_err();
    assert!(error.contains("one and two have the same address (10.0.0.7)"), "{error}");
    for name in ["a", "b"] {
        check(&super::group(&all, name).unwrap()).unwrap();
    }
    // As typed, two users of one machine are two.
    let typed = ["pi@nas", "root@nas"].map(|name| Board::typed(name).unwrap());
    check(&typed).unwrap();
}

#[test]
fn words_of_the_inventory_stand_before_arguments_of_ssh() {
    let text = "h2 ansible_ssh_common_args='-o Port=22 -o User=pi -o IdentityFile=/a -J x' \
                ansible_port=2222 ansible_user=root ansible_ssh_private_key_file=/b\n\
                h3 ansible_ssh_common_args='-o User=pi -o Port=22'\n";
    let expected = [
        "h2 = root@h2 Port=2222 IdentityFile=\"/b\" Port=22 IdentityFile=/a ProxyJump=x",
        "h3 = h3 User=pi Port=22",
    ];
    assert_eq!(boards("hosts", text), expected);
}

#[test]
fn a_merge_of_several_mappings_takes_the_first_that_has_a_key() {
    let text = "all:\n  vars:\n    a: &a {ansible_user: pi, ansible_port: 2222}\n    \
                b: &b {ansible_host: 10.0.0.9, ansible_port: 22}\n  hosts:\n    \
                h1: {<<: [*a, *b], ansible_user: own}\n    h2: {<<: *b}\n";
    assert_eq!(boards("a.yml", text), ["h1 = own@10.0.0.9 Port=2222", "h2 = 10.0.0.9 Port=22"]);
}

#[test]
fn null_of_a_host_counts_before_the_value_of_its_group() {
    let text = "all:\n  vars: {ansible_user: pi, ansible_port: 2222}\n  hosts:\n    \
                h1: {ansible_user: null, ansible_host: 10.0.0.1}\n    h2: {ansible_port: ~}\n    h3:\n";
    let expected = ["h1 = 10.0.0.1 Port=2222", "h2 = pi@h2", "h3 = pi@h3 Port=2222"];
    assert_eq!(boards("a.yml", text), expected);
    let list = r#"{"_meta": {"hostvars": {"h1": {"ansible_user": null}}},
        "all": {"hosts": ["h1"], "vars": {"ansible_user": "pi"}}}"#;
    assert_eq!(boards("a.json", list), ["h1 = h1"]);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (file, text, words) in [
        ("hosts", "", "lists no boards"),
        ("hosts", "[a:hosts]\npi\n", "line 1: [a:hosts] is no section"),
        ("hosts", "pi port 22\n", "line 1: 'port'"),
        ("hosts", "pi x='\n", "line 1: a ' is not closed"),
        ("hosts", "pi[9:1]\n", "runs backwards"),
        ("hosts", "pi ansible_port=ssh\n", "ansible_port of pi is 'ssh'"),
        ("hosts", "pi ansible_host={{ip}}\n", "ansible pi -i FILE -m debug -a var=ansible_host"),
        ("hosts", "pi,nas\n", "'pi,nas' has ',', which no machine's name has\nWrite the name"),
        ("hosts", "${ip} ansible_user=pi\n", "'${ip}' has '$'"),
        ("hosts", "pi ansible_host = 10.0.0.1\n", "KEY=VALUE, without blanks"),
        ("hosts", "10.0.0.7 pi pi.lan\n", "Write each host on a line of its own, such as: pi1"),
        ("config", "User pi\n\nHost pi1\n  HostName 10.0.0.1\n", "it is an ssh configuration"),
        ("config", "match all\n  Port 22\n", "--on pi1 --ssh-config FILE"),
        (
            "a.yml",
            "all:\n  hosts:\n    pi: {ansible_host: [10.0.0.1]}\n",
            "ansible_host of pi is no text",
        ),
        ("a.yml", "all:\n  hosts:\n    pi:\n---\nall:\n", ": a second document begins"),
        ("a.yml", "- hosts: all\n  tasks: []\n", "it is a playbook"),
        ("a.yml", "# nothing\n", "lists no boards"),
        ("f.toml", "[web.hosts]\npi = {}\n", "an Ansible inventory in TOML"),
        ("f.toml", "[all]\nchildren = [\"web\"]\n", "ansible-inventory -i FILE --list"),
        ("f.toml", "bords = []\n[groups]\nhosts = [\"b\"]", "bords"),
        (
            "a.yml",
            "all:\n  hosts:\n    pi:\n      ansible_user: !vault |\n        $ANSIBLE_VAULT;1.1;AES256\n        62\n",
            "ansible_user of pi is encrypted with Ansible Vault",
        ),
        (
            "a.json",
            r#"{"_meta": {"hostvars": {"pi": {"ansible_port": {"__ansible_vault": "$ANSIBLE_VAULT;1.1;AES256\n62"}}}},
                "all": {"hosts": ["pi"]}}"#,
            "ansible_port of pi is encrypted",
        ),
        ("hosts", "pi ansible_user=-oProxyCommand=x\n", "cannot reach board pi"),
        ("hosts", "pi ansible_host=-oProxyCommand=x\n", "cannot reach board pi"),
        ("hosts", "pi\n[a:children]\nb\n[b:children]\na\n[a]\npi\n", "contains itself"),
        ("inv.sh", "#!/bin/sh\n", "ansible-inventory -i inv.sh"),
        ("a.yml", "plugin: aws_ec2\n", "inventory plugin"),
        ("a.yml", "- a\n- b\n", "no mapping of groups"),
        ("a.yml", "all:\n  hosts: [a]\n", "hosts of the group all is no mapping"),
        ("a.yml", "all:\n  hosts:\n    pi: 10.0.0.7\n", "behind the host pi is no mapping"),
        ("a.yml", "all:\n  hosts:\n    pi:\n      - ansible_host: x\n", "behind the host pi"),
        (
            "a.json",
            r#"{"_meta": {"hostvars": {"pi": "10.0.0.7"}}, "web": {"hosts": ["pi"]}}"#,
            "behind the host pi is no mapping",
        ),
        ("a.json", r#"{"_meta": {}, "web": {"hosts": "pi"}}"#, "hosts of the group web is neither"),
        ("a.json", r#"{"_meta": {}, "web": "pi"}"#, "the group web is neither"),
        ("a.yml", "all:\n hosts:\n\t- x: y\n", "line "),
        ("f.toml", "bords = [\"a\"]", "bords"),
        ("f.toml", "boards = [\"a\"]\n[groups]\nx = [\"b\"]", "b is in a group"),
    ] {
        let found = error(file, text);
        assert!(found.contains(words), "{text}: {found}");
    }
}

#[test]
fn templates_that_name_variables_are_filled_in() {
    let text = "all:\n  vars:\n    site: lab\n    door: 2222\n    ansible_host: '{{ inventory_hostname }}.{{ site }}.lan'\n    \
                ansible_port: '{{ door }}'\n    ansible_ssh_common_args: '-J u@{{ site }}'\n  \
                hosts:\n    pi1:\n    pi2: {site: attic, ansible_port: 22}\n";
    let expected = [
        "pi1 = pi1.lab.lan Port=2222 ProxyJump=u@lab",
        "pi2 = pi2.attic.lan Port=22 ProxyJump=u@attic",
    ];
    assert_eq!(boards("a.yml", text), expected);
}

#[test]
fn arguments_of_ssh_count_wherever_they_stand_and_what_is_not_followed_is_named() {
    let text = "[g]\npi1\npi2 ansible_ssh_pass=secret\n[g:vars]\nansible_ssh_executable=knock\n\
                ansible_ssh_args=-o ControlMaster=auto -o ControlPersist=60s -o ProxyJump=a -C\n\
                ansible_ssh_common_args=-o ProxyJump=b\n";
    let expected =
        ["pi1 = pi1 ProxyJump=a ProxyJump=b in g", "pi2 = pi2 ProxyJump=a ProxyJump=b in g"];
    assert_eq!(boards("hosts", text), expected);
    let notes = read("hosts", text).unwrap().notes;
    assert_eq!(
        notes,
        [
            "ansible_ssh_args has -C, which is not followed; only -o and -J are",
            "ansible_ssh_executable is not followed: Rubus calls ssh",
            "ansible_ssh_pass is not followed: a board that needs a password asks for it on the terminal",
        ]
    );
}

#[test]
fn an_alias_of_aliases_does_not_fill_the_memory() {
    let mut text = String::from("a0: &a0 {x: y}\n");
    for level in 1..40 {
        let before = format!("*a{}", level - 1);
        text += &format!("a{level}: &a{level} {{hosts: {before}, vars: {before}}}\n");
    }
    let found = error("a.yml", &text);
    assert!(found.contains("more than"), "{found}");
}

#[test]
fn a_variable_with_ssh_in_its_name_counts_before_the_other() {
    let text = "[web]\nh1 ansible_ssh_user=root ansible_ssh_port=2200 ansible_ssh_host=10.0.0.1\n\
                [web:vars]\nansible_user=pi\nansible_port=22\nansible_host=x\n";
    assert_eq!(boards("hosts", text), ["h1 = root@10.0.0.1 Port=2200 in web"]);
}

#[test]
fn priority_counts_among_groups_of_one_depth_and_ungrouped_has_variables() {
    let text = "loner\n[a]\nh1\n[b]\nh1\n[a:vars]\nansible_user=a\nansible_group_priority=10\n\
                [b:vars]\nansible_user=b\n[ungrouped:vars]\nansible_user=u\n";
    assert_eq!(boards("hosts", text), ["loner = u@loner", "h1 = a@h1 in b a"]);
    let word = text.replace("=10", "=high");
    assert!(error("hosts", &word).contains("no whole number"));
}

#[test]
fn a_group_below_all_is_no_deeper_than_others() {
    let text = "all:\n  children:\n    a:\n      hosts: {h1: }\n      vars: {ansible_user: a}\n\
                b:\n  hosts: {h1: }\n  vars: {ansible_user: b}\n";
    assert_eq!(boards("hosts.yml", text), ["h1 = b@h1 in a b"]);
}

#[test]
fn marks_of_editors_vaults_and_lists_of_ansible_are_known() {
    assert_eq!(boards("hosts", "\u{feff}[web]\r\nh1\r\n"), ["h1 = h1 in web"]);
    let vault = error("hosts", "$ANSIBLE_VAULT;1.1;AES256\n62663838\n");
    assert!(vault.contains("encrypted with Ansible Vault"), "{vault}");
    let list = r#"{"_meta": {"hostvars": {"h1": {"ansible_host": "10.0.0.1", "ansible_port": 22}}},
        "all": {"children": ["ungrouped", "web"]}, "web": {"hosts": ["h1"], "vars": {"ansible_user": "pi"}}}"#;
    assert_eq!(boards("hosts.json", list), ["h1 = pi@10.0.0.1 Port=22 in web"]);
    let by_hand = r#"{"_meta": {"hostvars": {}}, "all": {"children": {"web": {"hosts": ["h2"]}}},
        "web": {"hosts": {"h1": {"ansible_host": "10.0.0.1"}, "h3": {}, "h4": null}}}"#;
    let expected = ["h2 = h2 in web", "h1 = 10.0.0.1 in web", "h3 = h3 in web", "h4 = h4 in web"];
    assert_eq!(boards("hosts.json", by_hand), expected);
    assert_eq!(boards("hosts", "host ansible_port=22\nmatch # it\n").len(), 2, "two names");
    let local = error("hosts", "h1 ansible_connection=local\n");
    assert!(local.contains("h1 is left out: its connection is local"), "{local}");
}

#[test]
fn twenty_thousand_groups_in_each_other_end_with_words() {
    let chain: String = (0..20_000).map(|n| format!("[g{n}:children]\ng{}\n", n + 1)).collect();
    let deep = error("hosts", &format!("{chain}[g20000]\nh1\n"));
    assert!(deep.contains("nested more than 1000 deep"), "{deep}");
    let circle = error("hosts", &format!("{chain}[g20000:children]\ng7\n[g3]\nh1\n"));
    assert!(circle.contains("contains itself"), "{circle}");
    let wide: String = (0..20_000).map(|n| format!("[g{n}]\nh{}\n", n % 9_000)).collect();
    assert_eq!(read("hosts", &wide).unwrap().boards.len(), 9_000);
}

#[test]
fn groups_times_hosts_are_limited() {
    let chain: String = (0..900).map(|n| format!("[g{n}:children]\ng{}\n", n + 1)).collect();
    let hosts = |count: usize| (0..count).map(|n| format!("h{n}\n")).collect::<String>();
    let deep = |count| format!("{chain}[g900]\n{}", hosts(count));
    assert_eq!(read("hosts", &deep(50)).unwrap().boards.len(), 50);
    assert!(error("hosts", &deep(9_000)).contains("too many together"));
    let many = error("hosts", &hosts(100_001));
    assert!(many.contains("more than 100000"), "{many}");
}

#[test]
fn on_takes_names_ranges_and_files() {
    let names = |typed: &str| match Named::parse(typed).unwrap() {
        Named::Boards(boards) => boards.into_iter().map(|board| board.name).collect(),
        Named::File(file) => vec![format!("file {file}")],
    };
    assert_eq!(names("pi@attic"), ["pi@attic"]);
    assert_eq!(names("pi@rack[1:2]"), ["pi@rack1", "pi@rack2"]);
    assert_eq!(names("ssh://pi@[fe80::1]:22"), ["ssh://pi@[fe80::1]:22"]);
    assert_eq!(names("@hosts.yml:ssd"), ["file hosts.yml:ssd"]);
    for wrong in ["", "@", "-oProxyCommand=x", "a b", "pi[2:1]"] {
        assert!(Named::parse(wrong).is_err(), "{wrong}");
    }
}

proptest::proptest! {
    #[test]
    fn no_file_makes_it_panic(text in "([a-z\\[\\]:{}=&*'\"\\-#! \n\t]|hosts:|all:|\n  ){0,80}") {
        for file in ["hosts", "a.yml", "f.toml"] {
            let _ = read(file, &text);
        }
    }
}

#[test]
fn whole_numbers_of_yaml_are_those_of_ansible() {
    let text = "all:\n  vars: {base: 02000}\n  hosts:\n    a: {ansible_port: 0022}\n    b: {ansible_port: '0022'}\n    \
                c: {ansible_port: !!str 0022}\n    d: {ansible_port: 22_00, ansible_user: 1:30:00}\n    \
                e: {ansible_port: '{{ base }}'}\n    0010:\n";
    let expected = [
        "a = a Port=18",
        "b = b Port=22",
        "c = c Port=22",
        "d = 5400@d Port=2200",
        "e = e Port=1024",
        "0010 = 0010",
    ];
    assert_eq!(boards("a.yml", text), expected);
}

#[test]
fn a_name_that_breaks_lines_is_refused() {
    for text in [
        "all:\n  hosts:\n    \"h1\\nrubus: ok\": {ansible_host: 10.0.0.1}\n",
        "\"g\\e[31m\":\n  hosts:\n    h1:\n",
    ] {
        assert!(error("x.yml", text).contains("has a control character\nGive it"), "{text}");
    }
}
