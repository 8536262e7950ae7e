mod changing;
mod listing;
mod tree;

pub(crate) use listing::{document, line_of};

use super::CommandResult;
use crate::context::Context;
use clap::Subcommand;
use std::process::ExitCode;

/// Work items
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum WorkCommand {
    Create(changing::CreateArgs),
    List(listing::ListArgs),
    Ready(listing::ReadyArgs),
    Search(listing::SearchArgs),
    Show(listing::ShowArgs),
    Tree(tree::TreeArgs),
    Update(changing::UpdateArgs),
    Close(changing::CloseArgs),
    Reopen(changing::ReopenArgs),
    #[command(subcommand)]
    Dep(changing::DepCommand),
    Import(changing::ImportArgs),
    Export(listing::ExportArgs),
}

pub(crate) fn run(command: WorkCommand, context: &Context) -> CommandResult {
    let town = context.town()?;
    match command {
        WorkCommand::Create(args) => changing::create(args, &town, context)?,
        WorkCommand::List(args) => listing::list(&args, &town, context)?,
        WorkCommand::Ready(args) => listing::ready(&args, &town, context)?,
        WorkCommand::Search(args) => listing::search(args, &town, context)?,
        WorkCommand::Show(args) => listing::show(&args, &town, context)?,
        WorkCommand::Tree(args) => tree::run(&args, &town, context)?,
        WorkCommand::Update(args) => changing::update(args, &town, context)?,
        WorkCommand::Close(args) => changing::close(&args, &town, context)?,
        WorkCommand::Reopen(args) => changing::reopen(&args, &town, context)?,
        WorkCommand::Dep(command) => changing::dep(&command, &town, context)?,
        WorkCommand::Import(args) => changing::import(&args, &town, context)?,
        WorkCommand::Export(listing::ExportArgs { .. }) => listing::export(&town, context)?,
    }
    Ok(ExitCode::SUCCESS)
}
