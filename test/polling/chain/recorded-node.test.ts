import { describeNode } from './support/node-conformance.ts';
import { openRecordedNode } from './support/recorded-node.ts';

// `node .ci/chopsticks/record.ts` records it again.
describeNode('a recorded node', openRecordedNode);
