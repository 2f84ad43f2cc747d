import { z } from 'zod';

/**
 * Maximum distance between a block and the block whose round finalizes it. The chain keeps all
 * blocks in between.
 */
const MAX_BLOCKS_AHEAD = 1_000;
export const finalityGapSchema = z.int().min(0).max(MAX_BLOCKS_AHEAD);

/**
 * How the chain and the senders of a deployment behave. Durations are seconds of the upstream's
 * clock, rates are shares from 0 to 1. `round…`: a finality round after the block that starts it.
 * `sendDelay…`, `rowUpdate…`: sent in parallel, from the submit to the transaction pool, and from
 * finality to the update of the row. `sender…`: serial senders.
 */
const usual = {
  slotS: 20,
  /** Slots without a block. */
  emptySlotRate: 0.03,
  blockDelayMinS: 0.1,
  blockDelayMaxS: 0.7,
  /** Blocks that must follow a block before a finality round finalizes it. */
  finalityGap: 1,
  roundMinS: 1.5,
  roundTailMeanS: 0.8,
  /** Blocks at which finality stalls while blocks continue. */
  stallRate: 0.000_5,
  stallMinS: 60,
  stallMaxS: 300,
  sendDelayMinS: 0.25,
  /** Beyond the minimum, exponential: neighbors may change places. */
  sendDelayMeanS: 0.3,
  rowUpdateMinS: 0.2,
  rowUpdateMaxS: 1,
  /** 0: notified at once. */
  senderPollMinS: 3.06,
  senderPollMaxS: 3.14,
  senderUpdateMinS: 0.3,
  senderUpdateMaxS: 0.8,
  senderRestS: 0.5,
  /** Spent on each message for another sender. */
  senderSkipS: 0.25,
};
export type World = typeof usual;

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

/** The fields of a world as options, each optional. */
export const worldOptions = Object.fromEntries(
  Object.keys(usual).map((name) => [name, z.number().min(0).optional()]),
) as { [K in keyof World]: z.ZodOptional<z.ZodNumber> };
