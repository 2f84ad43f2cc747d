import { Argument, type Command } from 'commander';
import { completionRules } from '../../input/completion-rules.ts';
import { COMPLETION_SCRIPTS } from '../../input/completion-scripts.ts';

type Shell = keyof typeof COMPLETION_SCRIPTS;

export function addCompletion(program: Command): void {
  program
    .command('completion')
    .description('Print a script that lets a shell complete commands, options and what they take.')
    .addArgument(new Argument('<shell>', 'for which shell').choices(Object.keys(COMPLETION_SCRIPTS)))
    .addHelpText(
      'after',
      `
Examples:
  bash  eval "$(dawatch completion bash)"      in ~/.bashrc
  zsh   eval "$(dawatch completion zsh)"       in ~/.zshrc, after compinit
  fish  dawatch completion fish | source       in ~/.config/fish/config.fish

What is completed is the command dawatch: in a checkout, alias dawatch='npx dawatch' makes it one.`,
    )
    .action((shell: Shell) => {
      process.stdout.write(COMPLETION_SCRIPTS[shell](completionRules(program)));
    });
}
