import { readFileSync, writeFileSync } from 'node:fs';
import type { Command } from 'commander';
import { type ConnectOptions, connect, withServer } from '../../cli/connect.ts';
import { CommandError, ExitCode } from '../../cli/exit.ts';
import { readText } from '../../cli/input.ts';
import { InvalidProofError, type Proof, verifyProof } from '../../client/proof.ts';
import { tryParse } from '../../lib/json.ts';
import { escapeText } from '../../lib/text.ts';

type Options = ConnectOptions & { output?: string; verify?: string; data?: string };

export function addProof(program: Command): void {
  withServer(program.command('proof'))
    .description('Get the proof that a block contains the data of a submission, or verify one.')
    .argument('[id]', 'submission id')
    .option('--output <file>', 'write the proof to this new file')
    .option('--verify <file>', 'verify the proof in this file; needs no server')
    .option('--data <file>', 'the submitted bytes, for --verify')
    .addHelpText(
      'after',
      '\nExamples:\n  dawatch proof 9f1c2f6e-8a44-4a46-9a0d-2f6f6a9f0c11 --output proof.json\n  dawatch proof --verify proof.json --data blob.bin',
    )
    .action(async (id: string | undefined, options: Options) => {
      const { output, verify, data } = options;
      if ((id === undefined) === (verify === undefined))
        throw new CommandError('name a submission id, or --verify', ExitCode.usage);
      if ((verify === undefined) !== (data === undefined) || (verify && output !== undefined))
        throw new CommandError('--verify needs --data, and no other option', ExitCode.usage);
      if (verify !== undefined && data !== undefined) return verifyFile(verify, data);
      const text = `${JSON.stringify(await connect(options).proof(id ?? ''))}\n`;
      if (output === undefined) process.stdout.write(text);
      else writeFileSync(output, text, { flag: 'wx' });
    });
}

async function verifyFile(file: string, dataFile: string): Promise<void> {
  const proof = parse(file, await readText(file));
  try {
    verifyProof(proof, readFileSync(dataFile));
  } catch (error) {
    if (!(error instanceof InvalidProofError)) throw error;
    throw new CommandError(`the proof is invalid: ${error.message}`, ExitCode.mismatch);
  }
  const { block_number, block_hash, data_root } = proof;
  const named = escapeText(`${block_number} ${block_hash}, data root ${data_root}`);
  process.stdout.write(`valid, if the chain has this block: ${named}\n`);
}

function parse(file: string, text: string): Proof {
  const proof = tryParse(text);
  if (proof === undefined) throw new CommandError(`${file} is not JSON`, ExitCode.usage);
  return proof as Proof;
}
