#include "client/cli/arguments.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "client/cli/names.h"
#include "client/cli/nearest.h"

namespace posenc::cli {
namespace {

void AddServer(CLI::App* app, Arguments* arguments) {
  app->add_option("--server", arguments->server,
                  "HOST:PORT or unix:PATH of a posenc-server; without one the library "
                  "in this tool answers, with the same bytes")
      ->envname("POSENC_SERVER")
      ->type_name("ADDR");
}

CLI::Option* AddCompat(CLI::App* app, Arguments* arguments) {
  return app->add_option("--compat", arguments->compat,
                         "read the config as transformers 4.57 or 5.16 does where they differ; "
                         "default: latest, 5.16's reading but that no key of the file is dropped");
}

// What narrows a MODEL; `source` is the option that the flags need.
void AddModelFlags(CLI::App* app, CLI::Option* source, Arguments* arguments) {
  app->add_option("--tower", arguments->tower, "text, encoder, decoder, vision, ...")
      ->needs(source);
  app->add_option("--layer-type", arguments->layer_type, "full_attention, sliding_attention, ...")
      ->needs(source);
  app->add_option("--sequence-length", arguments->sequence_length,
                  "that a dynamic or LongRoPE table is made for")
      ->needs(source);
  app->add_option("--hf-overrides", arguments->hf_overrides, "merged over the config")
      ->needs(source)
      ->type_name("JSON");
  app->add_option("--arithmetic", arguments->arithmetic, "float32 or exact")->needs(source);
  AddCompat(app, arguments)->needs(source);
}

void AddSource(CLI::App* app, Arguments* arguments) {
  CLI::Option* spec = app->add_option("--spec", arguments->spec, "an EncodingSpec in proto JSON")
                          ->type_name("FILE-or-JSON");
  app->add_option("--table", arguments->tables,
                  "numbers of the spec's table (a bias table, a position table), from .npy or "
                  ".safetensors[:TENSOR]; repeatable where there are several")
      ->needs(spec)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("[FIELD=]FILE");
  CLI::Option* config =
      app->add_option("--config", arguments->config,
                      "a folder (its config.json), a file, - for stdin, or an org/name of the "
                      "Hugging Face cache")
          ->type_name("MODEL")
          ->excludes(spec);
  AddModelFlags(app, config, arguments);
}

void AddSelection(CLI::App* app, Arguments* arguments) {
  CLI::Option* positions =
      app->add_option("--positions", arguments->positions,
                      "rows for B, B+1, ... E-1; --positions=-3:4 from below 0")
          ->type_name("B:E");
  CLI::Option* ids = app->add_option("--position-ids", arguments->position_ids, "one row each")
                         ->type_name("0,5,9")
                         ->excludes(positions);
  CLI::Option* grid =
      app->add_option("--grid", arguments->grid, "patches of an image, or of a video's frames")
          ->type_name("[T]xHxW")
          ->excludes(positions)
          ->excludes(ids);
  CLI::Option* selection =
      app->add_option("--selection", arguments->selection,
                      "a Selection in proto JSON, for what the other flags do not say: "
                      "masks, points, positions on several axes, prompts")
          ->type_name("FILE-or-JSON")
          ->excludes(positions)
          ->excludes(ids)
          ->excludes(grid);
  CLI::Option* query = app->add_option("--query-length", arguments->query_length, "rows of a bias")
                           ->excludes(positions)
                           ->excludes(ids)
                           ->excludes(grid)
                           ->excludes(selection);
  CLI::Option* key =
      app->add_option("--key-length", arguments->key_length, "columns of a bias")->needs(query);
  query->needs(key);
  app->add_option("--query-offset", arguments->query_offset, "position of the first query")
      ->needs(query);
}

void AddFormat(CLI::App* app, Arguments* arguments) {
  app->add_option("--dtype", arguments->dtype,
                  "f32, f64, f16, bf16, i32 (or float32, torch.float32, ...); auto: the config's");
  app->add_option("--layout", arguments->layout,
                  "how the values stand (cos_sin, cos_and_sin_full, pairs, inv_freq, slopes, bias, "
                  "...: the README has each encoding's)");
  CLI::Option* profile =
      app->add_option("--profile", arguments->profile,
                      "a serving stack that fills in what is left open: " + ProfileList() +
                          " (info says which version of each)");
  app->add_option("--rows,--max-model-len", arguments->rows,
                  "positions from 0 on that the profile's table is made for, instead of those that "
                  "the stack takes from the config. Not vLLM's --max-model-len: its tables keep "
                  "their rows whatever that says. A LongRoPE table of vllm and sglang has the "
                  "trained length's rows of the short list before them")
      ->type_name("N")
      ->needs(profile);
}

void AddCheck(CLI::App* app, Arguments* arguments) {
  app->add_option(
         "models", arguments->models,
         "files, folders (every config.json below, but in folders whose names begin with a "
         "dot), org/name, or - for stdin")
      ->required()
      ->type_name("MODEL...");
  app->add_option("--base", arguments->base, "the model that they are made from")
      ->type_name("MODEL");
  AddCompat(app, arguments);
  app->add_option("--hf-overrides", arguments->hf_overrides,
                  "merged over each model's config, not over the base's")
      ->type_name("JSON");
  app->add_option("--fail-on", arguments->fail_on, "error, warning or never: what exits with 1")
      ->capture_default_str();
  app->add_option("--format", arguments->report_format, "text, json, github or sarif")
      ->capture_default_str();
}

struct Subcommands {
  CLI::App* table;
  CLI::App* describe;
  CLI::App* resolve;
  CLI::App* check;
  CLI::App* info;
  CLI::App* health;
};

Subcommands AddSubcommands(CLI::App* app, Arguments* arguments) {
  const Subcommands commands = {
      app->add_subcommand("table", "writes a table to a file"),
      app->add_subcommand("describe", "prints all about a table but its bytes, as JSON"),
      app->add_subcommand("resolve", "prints the encodings of a model's config.json, as JSON"),
      app->add_subcommand("check", "finds what is wrong with models' configs, or not as in a base"),
      app->add_subcommand("info", "prints version, limits, encodings and profiles, as JSON"),
      app->add_subcommand("health", "exits 0 when the server is serving"),
  };
  for (CLI::App* command : {commands.table, commands.describe}) {
    AddSource(command, arguments);
    AddSelection(command, arguments);
    AddFormat(command, arguments);
    AddServer(command, arguments);
  }
  commands.table
      ->add_option("-o,--output", arguments->output,
                   ".safetensors (all tensors), .npy (one tensor), or - for raw bytes to stdout")
      ->required()
      ->type_name("FILE");
  commands.table->add_option("--show-rows", arguments->show_rows, "print the first N rows")
      ->check(CLI::Range(0, 100))
      ->type_name("N");
  commands.table
      ->add_flag("--share-memory", arguments->share_memory,
                 "take it as memory from a unix:PATH server that has this flag too, and print how "
                 "it came")
      ->envname("POSENC_SHARE_MEMORY");

  CLI::Option* model =
      commands.resolve
          ->add_option("model", arguments->config,
                       "a folder (its config.json), a file, - for stdin, or an org/name of the "
                       "Hugging Face cache")
          ->required()
          ->type_name("MODEL");
  AddModelFlags(commands.resolve, model, arguments);
  commands.resolve->add_flag("--short", arguments->in_short,
                             "for people: two lines an encoding instead of JSON");
  AddCheck(commands.check, arguments);
  for (CLI::App* command : {commands.resolve, commands.check, commands.info, commands.health}) {
    AddServer(command, arguments);
  }
  return commands;
}

Command CommandOf(const Subcommands& commands) {
  if (commands.table->parsed()) return Command::kTable;
  if (commands.describe->parsed()) return Command::kDescribe;
  if (commands.resolve->parsed()) return Command::kResolve;
  if (commands.check->parsed()) return Command::kCheck;
  if (commands.health->parsed()) return Command::kHealth;
  return Command::kInfo;
}

// The long flags of `command`, as they are typed.
std::vector<std::string> FlagNames(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// What `word`, which nothing took, may have meant in the command that was given, if one was.
std::string MeantBy(CLI::App& app, const std::string& word) {
  const std::string flag = word.substr(0, word.find('='));
  const std::vector<CLI::App*> given = app.get_subcommands();
  if (!given.empty()) return Nearest(flag, FlagNames(*given.front()));
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    commands.push_back(command->get_name());
  }
  return Nearest(flag, commands);
}

// CLI11 names what it did not expect from the last to the first, and only when nothing else is
// wrong: a misspelt flag is the cause of one that is missing.
ExitCode PrintUnexpected(CLI::App& app, const std::vector<std::string>& words) {
  std::string text = "posenc: not expected: ";
  std::string meant;
  bool is_misplaced = false;
  for (const std::string& word : words) {
    text += (&word == &words.front() ? "" : " ") + word;
    if (!meant.empty()) continue;
    meant = MeantBy(app, word);
    is_misplaced = meant == word.substr(0, word.find('='));
  }
  if (is_misplaced) {
    text += " (" + meant + " stands after the command)";
  } else if (!meant.empty()) {
    text += " (did you mean " + meant + "?)";
  }
  std::fprintf(stderr, "%s\nRun with --help for more information.\n", text.c_str());
  return kUsage;
}

}  // namespace

std::variant<Arguments, ExitCode> ParseArguments(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("posenc: the positional encodings of transformers, exactly");
  app.set_version_flag("--version", "posenc " POSENC_VERSION);
  app.require_subcommand(0, 1);  // none is noticed below: here it would hide a misspelt one
  const Subcommands commands = AddSubcommands(&app, &arguments);
  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty()) throw CLI::RequiredError("A subcommand");
  } catch (const CLI::ParseError& error) {
    const bool is_help = error.get_exit_code() == 0;
    const std::vector<std::string> unexpected = app.remaining(/*recurse=*/true);
    if (!is_help && !unexpected.empty()) return PrintUnexpected(app, unexpected);
    // Prints help to stdout, errors to stderr; its own codes are not ours.
    app.exit(error);
    return is_help ? kDone : kUsage;
  }
  arguments.command = CommandOf(commands);
  return arguments;
}

}  // namespace posenc::cli
