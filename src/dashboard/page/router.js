import { useEffect, useState } from 'preact/hooks';
import { withQuery } from './data/api.js';

/** @typedef {{ page: string, id: string | undefined, query: URLSearchParams }} Route */

/** "#/submissions/abc?x=1" → page "submissions", id "abc". */
export function parseRoute(hash) {
  const address = hash.replace(/^#?\/?/, '');
  const mark = address.indexOf('?');
  const [path, search] =
    mark === -1 ? [address, ''] : [address.slice(0, mark), address.slice(mark)];
  const [page = '', id] = path.split('/', 2).map(decoded);
  return {
    page: page === '' ? 'overview' : page,
    id: id === '' ? undefined : id,
    query: new URLSearchParams(search),
  };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function hrefTo(page, id, query = {}) {
  const path = page === 'overview' ? '' : page;
  return `#/${withQuery(id === undefined ? path : `${path}/${encodeURIComponent(id)}`, query)}`;
}

/** The newest address of each list, with its filters. @type {Map<string, string>} */
const lists = new Map();

export function hrefToList(page) {
  return lists.get(page) ?? hrefTo(page);
}

function readRoute() {
  const route = parseRoute(location.hash);
  if (route.id === undefined) lists.set(route.page, location.hash);
  return route;
}

export function useRoute() {
  const [route, setRoute] = useState(readRoute);
  useEffect(() => {
    const change = () => setRoute(readRoute());
    window.addEventListener('hashchange', change);
    return () => window.removeEventListener('hashchange', change);
  }, []);
  return route;
}
