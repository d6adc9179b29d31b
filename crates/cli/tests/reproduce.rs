//! `holonome reproduce`: the published experiments.

mod common;

use common::Folder;
use serde_json::Value;

/// Every claim of the papers is as recorded; a run that was made once is not made again.
#[test]
fn claims_are_as_recorded() {
    let folder = Folder::new();
    let first = folder.run("reproduce --out all --json").ok().json();
    let studies = first["studies"].as_array().unwrap();
    assert!(studies.len() >= 10);
    let claims: Vec<&Value> =
        studies.iter().flat_map(|study| study["claims"].as_array().unwrap()).collect();
    let measured = |claim: &&&Value| !claim["measured"].as_array().unwrap().is_empty();
    assert!(claims.iter().filter(measured).all(|claim| claim["agrees"] == true));
    // Claims of the long runs of water are left to `--full`.
    let open = claims.iter().filter(|claim| !measured(claim)).count();
    assert_eq!((&first["differ"], &first["open"], open), (&0.into(), &2.into(), 2));
    for verdict in ["holds", "holds-as-corrected", "does-not-hold"] {
        assert!(claims.iter().any(|claim| claim["verdict"] == verdict), "no claim {verdict}");
    }
    let table = std::fs::read_to_string(folder.path("all/claims.md")).unwrap();
    assert_eq!(
        table.lines().filter(|line| line.starts_with("| ")).count(),
        claims.len() + 2 * studies.len()
    );
    // One page for all leads to a page for each, and the figures are there for papers, too.
    let read = |name: &str| std::fs::read_to_string(folder.path("all").join(name)).unwrap();
    let all = read("report.html");
    for study in studies {
        let page = format!("{}/report.html", study["name"].as_str().unwrap());
        assert!(all.contains(&page) && read(&page).contains("What the paper claims"), "{page}");
    }
    let figure = read("planar-pendulum-2022/fig-6.svg");
    for text in [">step<", ">work in gradients<", ">rattle<", ">feedback-dop853<", ">10⁻¹²<"] {
        assert!(figure.contains(text), "no {text} in {figure}");
    }
    assert!(read("timings-2016/report.html").contains("section 4.2: chain of ten pendula"));

    // A second run would take other seconds.
    let second = folder.run("reproduce rigid-body-2016 --out all --json").ok().json();
    let rigid_body = studies.iter().find(|study| study["name"] == "rigid-body-2016");
    assert_eq!(Some(&second["studies"][0]), rigid_body);

    // A run with another recipe is made anew.
    let recipe = folder.path("all/rigid-body-2016/splitting.recipe");
    let known = std::fs::read_to_string(&recipe).unwrap();
    std::fs::write(&recipe, "another").unwrap();
    folder.run("reproduce rigid-body-2016 --out all").ok();
    assert_eq!(std::fs::read_to_string(&recipe).unwrap(), known);
}

#[test]
fn studies_are_listed_and_mistakes_are_named() {
    let folder = Folder::new();
    let list = folder.run("reproduce --list --json").ok().json();
    let names: Vec<&str> =
        list["studies"].as_array().unwrap().iter().filter_map(|s| s["name"].as_str()).collect();
    assert!(names.contains(&"planar-pendulum-2022") && names.is_sorted(), "{names:?}");
    folder
        .run("reproduce planar-pendulum")
        .refused(&["there is no study 'planar-pendulum'", "--list"]);
}
