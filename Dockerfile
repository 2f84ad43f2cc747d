# The image contains what the npm package contains, with the dependencies of the lockfile.
FROM --platform=$BUILDPLATFORM node:24-bookworm-slim AS package
WORKDIR /build
COPY . .
RUN npm ci && npm run build && npm pack
RUN mkdir /app && tar -xzf dawatch-*.tgz -C /app --strip-components=1 && cp package-lock.json .npmrc /app/
# While the lockfile has packages for development, npm installs those that are also optional for others, such as TypeScript.
RUN cd /app && npm pkg delete devDependencies workspaces && npm install --package-lock-only

# On the platform of the image, which decides about native packages.
FROM node:24-bookworm-slim AS app
COPY --from=package /app /app
WORKDIR /app
RUN npm ci

FROM node:24-bookworm-slim
LABEL org.opencontainers.image.title="dawatch" \
  org.opencontainers.image.description="Monitors data-availability submissions until they are final" \
  org.opencontainers.image.licenses="MIT"
ENV NODE_ENV=production
WORKDIR /app
COPY --from=app /app ./
# The command, and the volume of the ledger, which the unprivileged user owns.
RUN ln -s /app/src/cli/main.js /usr/local/bin/dawatch && mkdir /data && chown node:node /data
USER node
VOLUME /data
ENV DAWATCH_CONFIG=/app/config/docker.yaml
# The home directory is read-only, and the container has no other user. Without a writable /tmp there is no compile cache.
ENV XDG_CACHE_HOME=/tmp
# A migration of a large ledger needs temporary files, for which a read-only container has no other folder.
ENV SQLITE_TMPDIR=/data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=600s --retries=3 \
  CMD ["dawatch", "doctor", "--ready"]
CMD ["node", "--max-semi-space-size=16", "src/cli/main.js", "serve"]
