# Becomes a host: bash boot_host.sh NAME DISK [FOLDER PLACE]...
#
# Runs as the first process of new namespaces. The disk is that of the machine, with all changes kept
# in memory; /home lies in DISK. Each FOLDER is seen at PLACE.
set -eu
name=$1 disk=$2
shift 2

mount -t tmpfs tmpfs /mnt
mkdir /mnt/changes /mnt/work /mnt/seen
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/changes,workdir=/mnt/work /mnt/seen
cd /mnt/seen
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
for place in dev/shm tmp run root; do
  mount -t tmpfs tmpfs $place
done
chmod 1777 tmp dev/shm
mkdir -p run/sshd home
mount --bind "$disk" home
while [ $# -gt 0 ]; do
  mkdir -p ".$2"
  mount --bind "$1" ".$2"
  shift 2
done

hostname "$name"
id ubuntu >/dev/null 2>&1 && chroot . userdel ubuntu
chroot . useradd --create-home --shell /bin/bash --password '*' ubuntu
chroot . ssh-keygen -q -A
echo ready
exec chroot . /usr/sbin/sshd -D -o UsePAM=no -o PasswordAuthentication=no
