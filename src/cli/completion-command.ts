import createTabCommander from '@bomb.sh/tab/commander';
import type { Command } from 'commander';

/**
 * Adds `completion <shell>`, and the hidden command `complete`, which its scripts run at each press
 * of the tab key. All other commands must be added before.
 */
export function addCompletion(program: Command): void {
  createTabCommander(program, { completionCommandName: 'completion' });
  program.commands
    .find((command) => command.name() === 'completion')
    ?.description('Print a shell script that completes commands, options and their values.')
    .addHelpText(
      'after',
      `
Examples:
  bash  source <(dawatch completion bash)      in ~/.bashrc
  zsh   source <(dawatch completion zsh)       in ~/.zshrc, after compinit
  fish  dawatch completion fish | source       in ~/.config/fish/config.fish`,
    );
}
