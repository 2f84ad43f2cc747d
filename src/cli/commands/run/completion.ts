import { Argument, type Command } from 'commander';
import { completionRules } from '../../input/completion-rules.ts';
import { COMPLETION_SCRIPTS } from '../../input/completion-scripts.ts';

type Shell = keyof typeof COMPLETION_SCRIPTS;

export function addCompletion(program: Command): void {
  program
    .command('completion')
    .description('Print a shell script that completes commands, options and their values.')
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(COMPLETION_SCRIPTS)))
    .addHelpText(
      'after',
      `
Examples:
  bash  eval "$(dawatch completion bash)"      in ~/.bashrc
  zsh   eval "$(dawatch completion zsh)"       in ~/.zshrc, after compinit
  fish  dawatch completion fish | source       in ~/.config/fish/config.fish

The script completes the command dawatch. In a checkout, define it with alias dawatch='npx dawatch'.`,
    )
    .action((shell: Shell) => {
      process.stdout.write(COMPLETION_SCRIPTS[shell](completionRules(program)));
    });
}
