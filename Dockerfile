# The image contains what the npm package contains, with the dependencies of the lockfile.
FROM node:24-bookworm-slim AS package
WORKDIR /build
COPY . .
RUN npm ci && npm run build && npm pack
RUN mkdir /app && tar -xzf dawatch-*.tgz -C /app --strip-components=1 && cp package-lock.json .npmrc /app/
WORKDIR /app
RUN npm ci --omit=dev

FROM node:24-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=package /app ./
# The ledger is on a volume that the unprivileged user owns.
RUN mkdir /data && chown node:node /data
USER node
VOLUME /data
ENV DAWATCH_CONFIG=/app/config/docker.yaml
# The home directory is read-only, and the container has no other user. Without a writable /tmp there is no compile cache.
ENV XDG_CACHE_HOME=/tmp
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.DAWATCH_PORT || 8080) + '/readyz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--max-semi-space-size=16", "src/cli/main.js", "serve"]
