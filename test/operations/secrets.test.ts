import { expect, it } from 'vitest';
import { warning } from '../../src/operations/doctor/finding.ts';
import { withoutSecrets } from '../../src/operations/doctor/run-doctor.ts';

it('masks a secret address as a whole, its password and its path, even if they are quoted separately', () => {
  const value = 'https://user:pa%24sword@hooks.example/services/T0/key';
  const settings = [{ path: 'channels.ops.url', value, source: 'environment' }];
  const masked = warning(
    'channel.ops',
    'pa$sword pa%24sword /services/T0/key of hooks.example',
    value,
  );
  expect(withoutSecrets([masked], settings as never)).toEqual([
    warning('channel.ops', '******** ******** ******** of hooks.example', '********'),
  ]);
});
