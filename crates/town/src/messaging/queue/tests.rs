use super::*;
use gt_core::nudge::Priority;

fn queue() -> (tempfile::TempDir, MessageQueue) {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("q");
    let clock = Clock::default();
    (folder, MessageQueue { dir, clock })
}

fn message(id: &str, priority: Priority) -> Message {
    Message {
        id: id.to_owned(),
        sender: None,
        caller: None,
        text: format!("text of {id}"),
        is_command: false,
        priority,
        created_at: 0,
        expires_at: None,
        uptime: None,
    }
}

#[test]
fn a_message_is_always_in_exactly_one_place() {
    let (_folder, queue) = queue();
    let normal = message("a", Priority::Normal);
    let urgent = message("b", Priority::Urgent);
    queue.add(&normal, 10).unwrap();
    queue.add(&urgent, 10).unwrap();
    assert_eq!(queue.waiting(), [urgent.clone(), normal.clone()]);
    let mut taken = queue.take("life").unwrap().unwrap();
    assert_eq!((&taken.message, taken.phase), (&urgent, Phase::Taken));
    assert_eq!(queue.interrupted().unwrap().name(), taken.name());
    queue.advance(&mut taken, Phase::Pasting, 7).unwrap();
    assert_eq!(taken.phase, Phase::Pasting);
    assert_eq!(queue.interrupted().unwrap().name(), taken.name());
    queue.put_back(&taken).unwrap();
    assert_eq!(queue.waiting().len(), 2);
    let taken = queue.take("life").unwrap().unwrap();
    let receipt = Receipt {
        id: "b".into(),
        proof: Some(Proof::Screen),
        attempts: 1,
    };
    queue.finish(&taken, &receipt).unwrap();
    assert_eq!(queue.receipt("b"), Some(receipt));
    assert_eq!(queue.interrupted(), None);
    assert_eq!(queue.waiting(), [normal]);
}

#[test]
fn first_message_is_taken_without_reading_the_others() {
    let (_folder, queue) = queue();
    for id in ["a", "b", "c"] {
        queue.add(&message(id, Priority::Normal), 10).unwrap();
    }
    // A pipe without a writer blocks every reader.
    let made = std::process::Command::new("mkfifo")
        .arg(queue.new_path("1-d"))
        .status();
    assert!(made.unwrap().success());
    let (first, count) = queue.first_waiting(2);
    let ids: Vec<&str> = first.iter().map(|it| it.id.as_str()).collect();
    assert_eq!((ids, count), (vec!["a", "b"], 4));
    assert!(queue.has_readable());
    assert_eq!(queue.take("life").unwrap().unwrap().message.id, "a");
}

#[test]
fn newest_messages_set_aside_are_listed() {
    let (_folder, queue) = queue();
    for id in ["a", "b", "c"] {
        queue.add(&message(id, Priority::Normal), 10).unwrap();
        let taken = queue.take("life").unwrap().unwrap();
        queue.set_aside(&taken).unwrap();
    }
    let (newest, count) = queue.newest_set_aside(2);
    let ids: Vec<String> = newest.into_iter().map(|it| it.message.id).collect();
    assert_eq!((ids.join(" "), count), ("b c".to_owned(), 3));
}

#[test]
fn a_reported_prompt_confirms_only_the_message_that_was_entered() {
    let (_folder, queue) = queue();
    queue.add(&message("a", Priority::Normal), 10).unwrap();
    let mut taken = queue.take("life").unwrap().unwrap();
    queue.advance(&mut taken, Phase::Pasting, 0).unwrap();
    queue.confirm("text of a").unwrap();
    assert_eq!(queue.receipt("a"), None, "Enter was not pressed");
    queue.advance(&mut taken, Phase::Entering, 0).unwrap();
    queue.confirm("another text").unwrap();
    assert_eq!(queue.receipt("a"), None);
    queue.confirm("text of a\n").unwrap();
    assert_eq!(queue.receipt("a").unwrap().proof, Some(Proof::Hook));
}

#[test]
fn a_message_set_aside_leaves_the_queue_to_the_next() {
    let (_folder, queue) = queue();
    let (first, second) = (
        message("a", Priority::Normal),
        message("b", Priority::Normal),
    );
    queue.add(&first, 10).unwrap();
    queue.add(&second, 10).unwrap();
    let mut taken = queue.take("life").unwrap().unwrap();
    queue.advance(&mut taken, Phase::Pasting, 7).unwrap();
    assert_eq!((taken.prompts, taken.pastes), (7, 1));
    assert_eq!(queue.interrupted(), Some(taken.clone()));
    queue.set_aside(&taken).unwrap();
    let [killed] = &queue.set_aside_messages()[..] else {
        panic!("it is in one place");
    };
    assert_eq!(
        (&killed.message, &killed.reason),
        (&first, &entry::unknown_reason())
    );
    assert_eq!(queue.interrupted(), None);
    queue.write_reason(&first, "not shown").unwrap();
    let aside = queue.set_aside_messages().remove(0);
    assert_eq!(
        (&aside.message, aside.reason.as_str()),
        (&first, "not shown")
    );
    assert_eq!(queue.interrupted(), None);
    assert_eq!(queue.waiting(), [second]);
    queue.resume(&first, "life", 7).unwrap();
    assert_eq!(queue.set_aside_messages(), []);
    let again = queue.interrupted().unwrap();
    assert_eq!((&again.message, again.phase), (&first, Phase::Pasting));
    queue.set_aside(&again).unwrap();
    assert!(queue.cancel("a").unwrap() && !queue.cancel("a").unwrap());
}

#[test]
fn second_copy_of_an_earlier_version_goes_with_the_message() {
    let (_folder, queue) = queue();
    let both = || {
        queue.add(&message("a", Priority::Normal), 10).unwrap();
        queue
            .write_reason(&message("a", Priority::Normal), "")
            .unwrap();
    };
    both();
    let taken = queue.take("life").unwrap().unwrap();
    let receipt = Receipt {
        id: "a".into(),
        proof: None,
        attempts: 1,
    };
    queue.finish(&taken, &receipt).unwrap();
    assert_eq!(queue.set_aside_messages(), []);
    both();
    assert!(queue.cancel("a").unwrap());
    assert!(queue.is_empty() && queue.set_aside_messages().is_empty());
}

#[test]
fn a_full_queue_is_an_error_to_the_sender() {
    let (_folder, queue) = queue();
    queue.add(&message("a", Priority::Normal), 1).unwrap();
    let problem = queue.add(&message("b", Priority::Urgent), 1).unwrap_err();
    assert_eq!(problem.kind(), gt_core::ProblemKind::Conflict);
    assert!(queue.cancel("a").unwrap() && !queue.cancel("a").unwrap());
    assert!(queue.is_empty());
}

#[test]
fn expired_message_is_moved_aside() {
    let (_folder, queue) = queue();
    let mut old = message("a", Priority::Normal);
    old.expires_at = Some(5);
    queue.add(&old, 10).unwrap();
    assert_eq!(queue.expire(4).unwrap(), []);
    assert_eq!(queue.expire(5).unwrap(), [old]);
    assert!(queue.is_empty());
    assert_eq!(names(&queue.dir.join("expired")), ["1-a"]);
}

#[test]
fn expired_message_that_cannot_be_moved_is_not_reported_as_moved() {
    let (_folder, queue) = queue();
    for id in ["a", "b"] {
        let mut old = message(id, Priority::Normal);
        old.expires_at = Some(5);
        queue.add(&old, 10).unwrap();
    }
    // A folder in the place of the file keeps one of them from being moved.
    fs::create_dir_all(queue.dir.join("expired/1-a/x")).unwrap();
    let moved = queue.expire(5).unwrap();
    assert_eq!(moved.len(), 1);
    assert_eq!(moved[0].id, "b");
    assert_eq!(queue.waiting()[0].id, "a");
}

#[test]
fn file_without_a_message_is_reported_with_its_path() {
    let (_folder, queue) = queue();
    queue.add(&message("a", Priority::Normal), 10).unwrap();
    assert!(queue.unreadable(9).is_empty());
    fs::write(queue.dir.join("new/1-b"), "{").unwrap();
    assert_eq!(queue.waiting().len(), 1);
    let [problem] = &queue.unreadable(9)[..] else {
        panic!("one file cannot be read");
    };
    assert!(problem.message().contains("new/1-b"), "{problem}");
}
