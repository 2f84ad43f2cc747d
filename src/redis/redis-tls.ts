import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext, type SecureContext } from 'node:tls';

/** Paths of PEM files. The certificate and its key are set together. */
export type RedisTlsFiles = {
  /** Certificates of the authorities that are trusted instead of those of Node. */
  tls_ca_file?: string | undefined;
  /** Certificate of this client, optionally followed by intermediate certificates. */
  tls_cert_file?: string | undefined;
  tls_key_file?: string | undefined;
};

/** A file of the settings is unusable. The message names the setting and quotes no content. */
class RedisTlsError extends Error {
  override readonly name = 'RedisTlsError';
}

/**
 * The TLS options of a connection; replaced in place, so that every new connection uses the current
 * files.
 */
export type RedisTls = { secureContext?: SecureContext };

/** Reads and verifies the files. Throws a RedisTlsError. */
function readTls({ tls_ca_file, tls_cert_file, tls_key_file }: RedisTlsFiles): RedisTls {
  const ca =
    tls_ca_file === undefined ? undefined : readCertificates('redis.tls_ca_file', tls_ca_file);
  if (tls_cert_file === undefined || tls_key_file === undefined)
    return ca === undefined ? {} : { secureContext: createSecureContext({ ca }) };
  const cert = readCertificates('redis.tls_cert_file', tls_cert_file);
  const key = readPem('redis.tls_key_file', tls_key_file);
  if (!new X509Certificate(cert).checkPrivateKey(parseKey(key)))
    throw new RedisTlsError(
      'redis.tls_key_file is not the key of the certificate in redis.tls_cert_file',
    );
  return { secureContext: createSecureContext({ ...(ca !== undefined && { ca }), cert, key }) };
}

/** By the paths of the files. All connections with the same files share the options. */
const inUse = new Map<string, RedisTls>();

/**
 * Returns the TLS options of new connections. Keeps those of the previous call if a file is
 * unusable now, because files may be replaced one after the other. Throws a RedisTlsError if the
 * files have never been usable.
 */
export function tlsOf(files: RedisTlsFiles): RedisTls {
  const paths = JSON.stringify([files.tls_ca_file, files.tls_cert_file, files.tls_key_file]);
  const tls = inUse.get(paths);
  if (tls) {
    refreshTls(tls, files);
    return tls;
  }
  const read = readTls(files);
  inUse.set(paths, read);
  return read;
}

/**
 * Reads the files again, because certificates are replaced before they expire. Keeps the previous
 * ones if a file is unusable.
 */
export function refreshTls(tls: RedisTls, files: RedisTlsFiles): void {
  try {
    Object.assign(tls, readTls(files));
  } catch {
    // The next attempt reads the files again.
  }
}

/** Returns the reason why the files are unusable; undefined if they are usable. */
export function problemOfTls(files: RedisTlsFiles): string | undefined {
  try {
    readTls(files);
    return undefined;
  } catch (error) {
    if (error instanceof RedisTlsError) return error.message;
    throw error;
  }
}

function readCertificates(setting: string, file: string): string {
  const text = readPem(setting, file);
  const found = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (found.length === 0 || !found.every(isCertificate))
    throw new RedisTlsError(`${setting} names a file that is not a certificate in PEM format`);
  return text;
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).serialNumber !== '';
  } catch {
    return false;
  }
}

const ENCRYPTED = new Set(['ERR_MISSING_PASSPHRASE', 'ERR_OSSL_CRYPTO_INTERRUPTED_OR_CANCELLED']);

function parseKey(pem: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch (error) {
    const isEncrypted =
      error instanceof Error && 'code' in error && ENCRYPTED.has(String(error.code));
    const reason = isEncrypted
      ? 'an encrypted key, which is not supported'
      : 'not a private key in PEM format';
    throw new RedisTlsError(`redis.tls_key_file names a file that is ${reason}`);
  }
}

const REASONS: Record<string, string | undefined> = {
  ENOENT: 'that does not exist',
  EISDIR: 'that is a directory',
  EACCES: 'without permission to read it',
};

function readPem(setting: string, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    throw new RedisTlsError(
      `${setting} names a file ${REASONS[code] ?? `that cannot be read (${code})`}`,
    );
  }
}
