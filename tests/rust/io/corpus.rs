//! The files that fuzzing starts from, and those that it once broke a promise with, read again.

use std::path::Path;

#[allow(unreachable_pub)]
#[path = "../../../fuzz/src/lib.rs"]
mod checks;

#[test]
fn every_file_of_the_corpus_keeps_the_promises() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let mut bytes = 0;
    for (reader, check) in [
        ("libsvm", checks::libsvm as fn(&[u8])),
        ("model", checks::model),
        ("perceptron", checks::perceptron),
        ("svmlight", checks::svmlight),
        ("tree", checks::tree),
    ] {
        let files: Vec<_> =
            std::fs::read_dir(corpus.join(reader)).unwrap().map(|f| f.unwrap().path()).collect();
        assert!(!files.is_empty(), "{reader} has no files");
        for path in files {
            let file = std::fs::read(&path).unwrap();
            bytes += file.len();
            println!("{}", path.display());
            check(&file);
            for cut in (0..file.len()).step_by(1 + file.len() / 100) {
                check(&file[..cut]);
            }
        }
    }
    assert!(bytes <= 200_000, "the corpus has {bytes} bytes");
}

/// A container with a header of its own.
fn container(header: &str) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat()
}

#[test]
fn files_made_to_take_memory_do_not() {
    let many = |part: &str| part.repeat(1_000_000 / part.len());
    let numbered = |part: &dyn Fn(usize) -> String| (0..20_000).map(part).collect::<Vec<_>>().join(",");
    let start = r#""__metadata__":{"format":"svmarrow","version":"1","extra":""#;
    let empty = |i: usize| format!(r#""{i}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#);
    for header in [
        format!(r#"{{"a":[{}]}}"#, many("[],").trim_end_matches(',')),
        format!(r#"{{"a":{{"shape":[{}0]}}}}"#, many("0,")),
        format!(r#"{{"a":{{"dtype":"U8","data_offsets":[0,0],"shape":[{}0]}},{start}"}}}}"#, many("0,")),
        format!("{{{}}}", numbered(&|i| format!("\"{i}\":0"))),
        format!("{{{}}}", numbered(&empty)),
        format!("{{{},{start}\"}}}}", numbered(&empty)),
        format!(r#"{{{start}",{}}}}}"#, numbered(&|i| format!("\"{i}\":\"\""))),
        format!(r#"{{{start}","kernel":"[{}0]"}}}}"#, many("[],")),
        format!(r#"{{{start}{}"}}}}"#, many("\\u0001")),
    ] {
        checks::model(&container(&header));
    }
    for text in [
        many("0\n"),
        many("1 "),
        many(" "),
        format!("1 {}", (1..100_000).map(|i| format!("{i}:1")).collect::<Vec<_>>().join(" ")),
        many("1 1:1\n"),
    ] {
        checks::svmlight(text.as_bytes());
    }
    let head = "svm_type epsilon_svr\nkernel_type linear\nnr_class 2\nrho 0\ntotal_sv";
    for text in [
        format!("{head} 500000\nSV\n{}", many("0\n")),
        format!("{head} 500000\nSV\n{}", many("0\n0 ")),
        format!("{head} 18446744073709551615\nSV\n{}", many("0 1:1\n")),
        format!("svm_type c_svc\nrho {}", many("0 ")),
        format!("svm_type c_svc\nnr_sv {}", many("0 ")),
        format!("svm_type c_svc\nlabel {}", many("0 ")),
        format!("svm_type {}", many("0 ")),
        many("nu\n"),
    ] {
        checks::libsvm(text.as_bytes());
    }
}
