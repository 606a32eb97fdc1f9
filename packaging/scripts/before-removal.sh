if command -v systemctl >/dev/null; then
    systemctl --quiet disable memgauge.timer memgauge-watch.service || true
fi
if [ -d /run/systemd/system ]; then
    systemctl stop memgauge.timer memgauge.service memgauge-watch.service || true
fi
