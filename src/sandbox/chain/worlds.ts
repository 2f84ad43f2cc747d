import { z } from 'zod';

const share = z.number().min(0).max(1);
const seconds = z.number().min(0);

/**
 * Maximum distance between a block and the block whose round finalizes it. The chain keeps all
 * blocks in between.
 */
const MAX_BLOCKS_AHEAD = 1_000;
export const finalityGapSchema = z.int().min(0).max(MAX_BLOCKS_AHEAD);

/**
 * Parameters of the chain and the senders of a deployment. A world defines a value for each; an
 * option of the same name overrides it. Durations are seconds of the upstream's clock.
 */
const worldFields = {
  slotS: z.number().positive().describe('Seconds of one slot.'),
  // With only empty slots, the search for the next block would not terminate.
  emptySlotRate: z
    .number()
    .min(0)
    .max(0.99)
    .describe('Share (0 to 0.99) of slots without a block.'),
  blockDelayMinS: seconds.describe('Least seconds from the start of a slot to its block.'),
  blockDelayMaxS: seconds.describe(
    'Most seconds from the start of a slot to its block; less than a slot.',
  ),
  finalityGap: finalityGapSchema.describe(
    'Blocks that must follow a block before a finality round finalizes it (count).',
  ),
  roundMinS: seconds.describe(
    'Least seconds a finality round takes after the block that starts it.',
  ),
  roundTailMeanS: seconds.describe(
    'Mean seconds a finality round takes beyond that (exponential).',
  ),
  stallRate: share.describe(
    'Share (0 to 1) of blocks at which finality stalls while blocks continue.',
  ),
  stallMinS: seconds.describe('Least seconds a stall lasts.'),
  stallMaxS: seconds.describe('Most seconds a stall lasts.'),
  rowUpdateMinS: seconds.describe(
    'Sent in parallel: least seconds from finality to the update of the row.',
  ),
  rowUpdateMaxS: seconds.describe(
    'Sent in parallel: most seconds from finality to the update of the row.',
  ),
  senderPollMinS: seconds.describe(
    'Serial senders: least polling interval in seconds, 0 = notified at once.',
  ),
  senderPollMaxS: seconds.describe('Serial senders: greatest polling interval in seconds.'),
  senderUpdateMinS: seconds.describe(
    'Serial senders: least seconds from that poll to the update of the row.',
  ),
  senderUpdateMaxS: seconds.describe(
    'Serial senders: most seconds from that poll to the update of the row.',
  ),
  senderRestS: seconds.describe('Serial senders: seconds of rest after each submission.'),
  senderSkipS: seconds.describe(
    'Serial senders: seconds spent on each message for another sender.',
  ),
};
const worldSchema = z.object(worldFields);
export type World = z.output<typeof worldSchema>;

const usual: World = {
  slotS: 20,
  emptySlotRate: 0.03,
  blockDelayMinS: 0.1,
  blockDelayMaxS: 0.7,
  finalityGap: 1,
  roundMinS: 1.5,
  roundTailMeanS: 0.8,
  stallRate: 0.000_5,
  stallMinS: 60,
  stallMaxS: 300,
  rowUpdateMinS: 0.2,
  rowUpdateMaxS: 1,
  senderPollMinS: 3.06,
  senderPollMaxS: 3.14,
  senderUpdateMinS: 0.3,
  senderUpdateMaxS: 0.8,
  senderRestS: 0.5,
  senderSkipS: 0.25,
};

/** Without chance and delays. Nothing stalls, so the length of a stall does not matter. */
const EVENLY: World = {
  ...(Object.fromEntries(Object.keys(usual).map((name) => [name, 0])) as World),
  slotS: usual.slotS,
  stallMinS: usual.stallMinS,
  stallMaxS: usual.stallMaxS,
};

/**
 * The worlds by name. `ideal` is deterministic: blocks at multiples of the slot, final exactly two
 * slots later.
 */
export const WORLDS = {
  calm: {
    ...usual,
    emptySlotRate: 0.01,
    roundTailMeanS: 0.4,
    stallRate: 0,
    rowUpdateMinS: 0.1,
    rowUpdateMaxS: 0.4,
  },
  usual,
  rough: { ...usual, emptySlotRate: 0.1, roundTailMeanS: 2, stallRate: 0.005, rowUpdateMaxS: 2 },
  ideal: { ...EVENLY, finalityGap: 2 },
} as const satisfies Record<string, World>;

export type WorldName = keyof typeof WORLDS;
export const WORLD_NAMES = Object.keys(WORLDS) as [WorldName, ...WorldName[]];

/** The same fields as options, each optional. */
export const worldOptionFields = Object.fromEntries(
  Object.entries(worldFields).map(([name, field]) => [
    name,
    field.optional().describe(field.description ?? ''),
  ]),
) as { [K in keyof World]: z.ZodOptional<z.ZodNumber> };

/**
 * Returns the value of an option in `usual` and in worlds that differ from it; undefined for an
 * option without a value per world.
 */
export function worldDefaults(option: string): string | undefined {
  if (!isWorldOption(option)) return undefined;
  const others = WORLD_NAMES.filter((name) => WORLDS[name][option] !== usual[option]);
  return [usual[option], ...others.map((name) => `${name} ${WORLDS[name][option]}`)].join(', ');
}

function isWorldOption(option: string): option is keyof World {
  return Object.hasOwn(worldFields, option);
}

const RANGES = [
  ['blockDelayMinS', 'blockDelayMaxS'],
  ['stallMinS', 'stallMaxS'],
  ['rowUpdateMinS', 'rowUpdateMaxS'],
  ['senderPollMinS', 'senderPollMaxS'],
  ['senderUpdateMinS', 'senderUpdateMaxS'],
] as const satisfies [keyof World, keyof World][];

/** Returns the contradictions between fields that are valid individually. */
export function contradictions(world: World): { option: keyof World; message: string }[] {
  const found: { option: keyof World; message: string }[] = RANGES.filter(
    ([min, max]) => world[min] > world[max],
  ).map(([min, max]) => ({
    option: max,
    message: `${world[max]} is less than ${min} (${world[min]})`,
  }));
  if (world.blockDelayMaxS >= world.slotS)
    found.push({
      option: 'blockDelayMaxS',
      message: `${world.blockDelayMaxS} is not less than slotS (${world.slotS})`,
    });
  if (world.stallRate > 0 && world.stallMaxS > MAX_BLOCKS_AHEAD * world.slotS)
    found.push({
      option: 'stallMaxS',
      message: `${world.stallMaxS} is more than ${MAX_BLOCKS_AHEAD} slots`,
    });
  return found;
}
